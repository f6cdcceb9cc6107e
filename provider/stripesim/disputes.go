package stripesim

import (
	"errors"
	"slices"
	"strings"
)

// DisputeTerms say how a dispute is opened or changed; what is empty has its default, or stays.
type DisputeTerms struct {
	Amount     int64  `json:"amount"` // default: the charge's
	Reason     string `json:"reason"` // default: fraudulent
	Status     string `json:"status"` // default: needs_response; warning_… is an inquiry
	Refundable *bool  `json:"is_charge_refundable"`
	DueBy      int64  `json:"due_by"`           // unix seconds; default: a week later
	Submitted  int64  `json:"submission_count"` // how often evidence was sent
}

// disputeEnds are the states that a dispute does not leave by itself.
var disputeEnds = []string{"won", "lost", "warning_closed", "prevented"}

func (d *dispute) status() string {
	if d.Status == "" {
		return "needs_response"
	}
	return d.Status
}

// inquiry: no money was taken.
func (d *dispute) inquiry() bool { return strings.HasPrefix(d.status(), "warning_") }

func (d *dispute) refundable() bool {
	if d.Refundable != nil && d.Status != "won" {
		return *d.Refundable
	}
	return d.Status == "won" || d.inquiry()
}

// change applies terms, and tells of the money that moves with them.
func (d *dispute) change(t DisputeTerms, rec *record) {
	if t.Amount > 0 {
		d.Amount = t.Amount
	}
	if t.Reason != "" {
		d.Reason = t.Reason
	}
	if t.Status != "" {
		d.Status = t.Status
	}
	if t.Refundable != nil {
		d.Refundable = t.Refundable
	}
	if t.DueBy > 0 {
		d.DueBy = t.DueBy
	}
	if t.Submitted > 0 {
		d.Submissions = t.Submitted
	}
	switch open := !slices.Contains(disputeEnds, d.status()); {
	case open && !d.inquiry() && !d.Withdrawn:
		d.Withdrawn = true
		rec.event("charge.dispute.funds_withdrawn")
	case d.Status == "won" && d.Withdrawn:
		d.Withdrawn = false
		rec.event("charge.dispute.funds_reinstated")
	}
}

func addDispute(rec *record, ch *charge, t DisputeTerms) {
	rec.Dispute = &dispute{
		ID: newID("dp_1"), Created: ch.Created, Live: ch.Live, Charge: ch.ID, Intent: ch.Intent, Amount: ch.Amount, Currency: ch.Currency,
	}
	later := *ch
	later.Dispute = rec.Dispute.ID
	rec.Later = &later
	rec.event("charge.dispute.created")
	rec.Dispute.change(t, rec)
}

// DisputeCharge opens a dispute over a captured charge, which may have others.
func (s *Server) DisputeCharge(id string) error {
	_, err := s.OpenDispute(id, DisputeTerms{})
	return err
}

// OpenDispute is DisputeCharge with other terms. It gives the dispute's id.
func (s *Server) OpenDispute(charge string, t DisputeTerms) (id string, err error) {
	err = s.change(func(st *state) *record {
		e := st.charges[charge]
		if e == nil || !e.cur.Captured {
			return nil
		}
		rec := &record{Op: opChange}
		addDispute(rec, e.cur, t)
		rec.Dispute.Created = s.now().Unix()
		id = rec.Dispute.ID
		return rec
	})
	return id, err
}

// ChangeDispute changes a dispute that is open or closed, with charge.dispute.updated.
func (s *Server) ChangeDispute(id string, t DisputeTerms) error {
	return s.onDispute(id, "charge.dispute.updated", func(*dispute) bool { return true }, t)
}

// CloseDispute ends an open dispute: it is won, lost, warning_closed or prevented. The charge of
// one that is won can be refunded again.
func (s *Server) CloseDispute(id, status string) error {
	if !slices.Contains(disputeEnds, status) {
		return errors.New("status is " + strings.Join(disputeEnds, ", "))
	}
	open := func(d *dispute) bool { return !slices.Contains(disputeEnds, d.Status) }
	return s.onDispute(id, "charge.dispute.closed", open, DisputeTerms{Status: status})
}

func (s *Server) onDispute(id, event string, may func(*dispute) bool, t DisputeTerms) error {
	return s.change(func(st *state) *record {
		e := st.disputes[id]
		if e == nil || !may(e.cur) {
			return nil
		}
		d := *e.cur
		rec := &record{Op: opChange, Dispute: &d}
		rec.event(event)
		d.change(t, rec)
		return rec
	})
}

// WarnOfFraud makes an early fraud warning about a charge, and gives its id.
func (s *Server) WarnOfFraud(charge, fraudType string) (id string, err error) {
	if fraudType == "" {
		fraudType = "made_with_stolen_card"
	}
	err = s.change(func(st *state) *record {
		e := st.charges[charge]
		if e == nil || e.cur.Status != succeeded {
			return nil
		}
		ch := e.cur
		rec := &record{Op: opChange, Warning: &warning{
			ID: newID("issfr_1"), Created: s.now().Unix(), Live: ch.Live, Charge: ch.ID, Intent: ch.Intent, FraudType: fraudType,
			Actionable: ch.Dispute == "" && ch.AmountRefunded < ch.AmountCaptured,
		}}
		id = rec.Warning.ID
		rec.event("radar.early_fraud_warning.created")
		return rec
	})
	return id, err
}

func (st *state) putWarning(w *warning) {
	entry := &warningEntry{position: st.next(w.Created), cur: w}
	st.warnings[w.ID] = entry
	st.allWarnings.insert(entry)
}

func (s *Server) listDisputes(c *call) answer {
	line := &s.state.allDisputes
	return listOfCharge(c, "dispute", "/v1/disputes", line, func(id string) *position {
		if e := s.state.disputes[id]; e != nil {
			return &e.position
		}
		return nil
	}, func(i int) (renderer, listedOf) {
		d := line.items[i].cur
		return d, listedOf{d.Live, d.Charge, d.Intent}
	})
}

func (s *Server) listWarnings(c *call) answer {
	line := &s.state.allWarnings
	return listOfCharge(c, "early_fraud_warning", "/v1/radar/early_fraud_warnings", line, func(id string) *position {
		if e := s.state.warnings[id]; e != nil {
			return &e.position
		}
		return nil
	}, func(i int) (renderer, listedOf) {
		w := line.items[i].cur
		return w, listedOf{w.Live, w.Charge, w.Intent}
	})
}

// listedOf is what an entry of a list is filtered by.
type listedOf struct {
	live           bool
	charge, intent string
}

// listOfCharge lists what belongs to charges.
func listOfCharge[T interface{ at() position }](
	c *call, what, url string, line *timeline[T], find func(id string) *position, entry func(i int) (renderer, listedOf),
) answer {
	if bad := c.params.allow("charge created ending_before limit payment_intent starting_after", "created expand"); bad != nil {
		return bad.answer()
	}
	w, bad := c.window(what, find)
	if bad != nil {
		return bad.answer()
	}
	of, through := c.params.get("charge"), c.params.get("payment_intent")
	shown := map[position]renderer{}
	w.keep = func(i int) bool {
		r, e := entry(i)
		keep := e.live == c.live && (of == "" || e.charge == of) && (through == "" || e.intent == through)
		if keep {
			shown[line.items[i].at()] = r
		}
		return keep
	}
	items, more := line.page(w)
	out := listing{object: "list", url: url, more: more}
	for _, e := range items {
		out.items = append(out.items, shown[e.at()])
	}
	return ok(out)
}
