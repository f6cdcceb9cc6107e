package stripesim

import (
	"slices"
	"sort"
)

func (s *Server) createRefund(c *call) (work, *apiError) {
	p := c.params
	if bad := p.allow("amount charge payment_intent reason refund_application_fee reverse_transfer", "expand metadata"); bad != nil {
		return nil, bad
	}
	id, through := p.get("charge"), p.get("payment_intent")
	if id == "" && through == "" {
		return nil, missing("charge")
	}
	amount, given, bad := p.positive("amount")
	if bad != nil {
		return nil, bad
	}
	metadata, bad := p.metadata()
	if bad != nil {
		return nil, bad
	}
	reason := p.get("reason")
	if reason != "" && !has("duplicate fraudulent requested_by_customer", reason) {
		return nil, invalid("", "reason", "Invalid reason: must be one of duplicate, fraudulent, or requested_by_customer")
	}
	return func(st *state) (*record, *apiError) {
		if through != "" {
			in := st.intents[through]
			switch {
			case in == nil || in.cur.Live != c.live:
				return nil, noSuchParam("payment_intent", through, "payment_intent")
			case id != "" && id != in.cur.Charge:
				return nil, invalid("", "charge", "Charge %s is not that of PaymentIntent %s.", id, through)
			case in.cur.Charge == "":
				return nil, in.cur.unexpected("This PaymentIntent does not have a successful charge to refund.")
			}
			id = in.cur.Charge
		}
		e := st.charges[id]
		if e == nil || e.cur.Live != c.live {
			return nil, noSuchParam("charge", id, "charge")
		}
		ch := *e.cur
		rest := ch.Amount - ch.AmountRefunded
		if !given {
			amount = rest
		}
		if bad := refundable(e, amount, rest); bad != nil {
			return nil, bad
		}
		ch.AmountRefunded += amount
		rec := &record{Op: opRefund, Charge: &ch}
		rec.Refund = &refund{
			ID: newID("re_3"), Created: s.now().Unix(), Live: ch.Live, Charge: id, Intent: ch.Intent, Amount: amount, Currency: ch.Currency,
			Reason: reason, Status: refundStatus(&ch), Metadata: metadata, Key: c.key,
		}
		rec.event("charge.refunded")
		rec.event("refund.created")
		return rec, nil
	}, nil
}

func refundable(e *chargeEntry, amount, rest int64) *apiError {
	ch := e.cur
	switch {
	case ch.Status != "succeeded":
		return invalid("", "charge", "Charge %s did not succeed, so there is nothing to refund.", ch.ID)
	case slices.ContainsFunc(e.disputes, func(d *disputeEntry) bool { return !d.cur.refundable() }):
		return invalid("charge_disputed", "", "Charge %s has been charged back; cannot issue a refund.", ch.ID)
	case rest == 0:
		return invalid("charge_already_refunded", "", "Charge %s has already been refunded.", ch.ID)
	case amount > rest:
		return invalid("", "amount", "Refund amount (%s) is greater than unrefunded amount on charge (%s)",
			money(amount, ch.Currency), money(rest, ch.Currency))
	case !ch.Captured && ch.Intent != "":
		return invalid("", "charge", "Charge %s is not captured: cancel PaymentIntent %s instead.", ch.ID, ch.Intent)
	case !ch.Captured && amount < ch.Amount:
		return invalid("", "amount", "Charge %s is not captured: it can only be refunded whole, or captured for less.", ch.ID)
	}
	return nil
}

// FailRefund makes a refund that succeeded or is under way fail, which banks do days later. The
// charge gets its amount back.
func (s *Server) FailRefund(id, reason string) error {
	if reason == "" {
		reason = "lost_or_stolen_card"
	}
	return s.change(func(st *state) *record {
		e := st.refunds[id]
		if e == nil || e.cur.Status == "failed" || e.cur.Status == canceled {
			return nil
		}
		re := *e.cur
		re.Status, re.FailureReason = "failed", reason
		ch := *st.charges[re.Charge].cur
		ch.AmountRefunded -= re.Amount
		rec := &record{Op: opChange, Charge: &ch, Refund: &re}
		rec.event("refund.failed")
		rec.event("refund.updated")
		rec.event("charge.refund.updated")
		return rec
	})
}

// change is for what happens at Stripe without a request of its client.
func (s *Server) change(happen func(*state) *record) error {
	s.mu.Lock()
	rec := happen(s.state)
	if rec == nil {
		s.mu.Unlock()
		return errNotThere
	}
	rec.At = s.now().Unix()
	ticket, err := s.commit(rec)
	s.mu.Unlock()
	if err == nil {
		err = s.durable(ticket)
	}
	if err == nil {
		s.hooks.tell(rec.made)
	}
	return err
}

// balance is the object of GET /v1/balance: what was captured and not refunded, without fees.
// account is GET /v1/account, of which only the id matters here.
type account struct{ id string }

func (a account) render(e *enc) {
	e.open()
	e.text("id", a.id)
	e.text("object", "account")
	e.text("type", "standard")
	e.close()
}

type balance struct {
	sums map[string]int64
	live bool
}

func (b balance) render(e *enc) {
	names := make([]string, 0, len(b.sums))
	for c := range b.sums {
		names = append(names, c)
	}
	sort.Strings(names)
	if len(names) == 0 {
		names = []string{"usd"}
	}
	e.open()
	e.text("object", "balance")
	for _, list := range []string{"available", "pending"} {
		e.key(list)
		e.b = append(e.b, '[')
		for i, c := range names {
			if i > 0 {
				e.b = append(e.b, ',')
			}
			amount := b.sums[c]
			if list == "pending" {
				amount = 0
			}
			e.open()
			e.num("amount", amount)
			e.text("currency", c)
			e.key("source_types")
			e.open()
			e.num("card", amount)
			e.close()
			e.b = append(e.b, ',')
			e.close()
		}
		e.b = append(e.b, ']', ',')
	}
	e.flag("livemode", b.live)
	e.close()
}
