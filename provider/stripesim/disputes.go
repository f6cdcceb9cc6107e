package stripesim

func addDispute(rec *record, ch *charge) {
	rec.Dispute = &dispute{
		ID: newID("dp_1"), Created: ch.Created, Live: ch.Live, Charge: ch.ID, Intent: ch.Intent, Amount: ch.Amount, Currency: ch.Currency,
	}
	later := *ch
	later.Dispute, later.DisputeWon = rec.Dispute.ID, false
	rec.Later = &later
	rec.event("charge.dispute.created")
}

// DisputeCharge opens a dispute over a captured charge.
func (s *Server) DisputeCharge(id string) error {
	return s.change(func(st *state) *record {
		e := st.charges[id]
		if e == nil || e.cur.Dispute != "" || !e.cur.Captured {
			return nil
		}
		rec := &record{Op: opChange}
		addDispute(rec, e.cur)
		rec.Dispute.Created = s.now().Unix()
		return rec
	})
}

// CloseDispute ends an open dispute: it is "won" or "lost". The charge of one that is won can be refunded again.
func (s *Server) CloseDispute(id, status string) error {
	return s.change(func(st *state) *record {
		e := st.disputes[id]
		if e == nil || e.cur.Status != "" || status != "won" && status != "lost" {
			return nil
		}
		d := *e.cur
		d.Status = status
		ch := *st.charges[d.Charge].cur
		ch.DisputeWon = status == "won"
		rec := &record{Op: opChange, Dispute: &d, Charge: &ch}
		rec.event("charge.dispute.closed")
		return rec
	})
}

func (s *Server) listDisputes(c *call) answer {
	if bad := c.params.allow("charge created ending_before limit payment_intent starting_after", "created expand"); bad != nil {
		return bad.answer()
	}
	line := &s.state.allDisputes
	w, bad := c.window("dispute", func(id string) *position {
		if e := s.state.disputes[id]; e != nil {
			return &e.position
		}
		return nil
	})
	if bad != nil {
		return bad.answer()
	}
	of, through := c.params.get("charge"), c.params.get("payment_intent")
	w.keep = func(i int) bool {
		d := line.items[i].cur
		return d.Live == c.live && (of == "" || d.Charge == of) && (through == "" || d.Intent == through)
	}
	items, more := line.page(w)
	out := listing{object: "list", url: "/v1/disputes", more: more}
	for _, e := range items {
		out.items = append(out.items, e.cur)
	}
	return ok(out)
}
