package stripesim

// What happens to an authorisation without a request of the API's client: it lapses, or somebody
// uses the dashboard.

// LapseHold lets an authorisation lapse, as Stripe does after a week: the charge counts as
// refunded, and an intent is cancelled.
func (s *Server) LapseHold(charge string) error {
	return s.onHold(charge, func(rec *record) {
		s.letGo(rec, rec.Charge, rec.Charge.Amount)
		rec.Charge.Lapsed, rec.Refund.Reason = true, "expired_uncaptured_charge"
		rec.event("charge.expired")
		rec.event("charge.refunded")
		s.cancelHeld(rec, "automatic")
	})
}

// ReleaseHold lets go of an authorisation as the dashboard does: with a refund of the charge, or by
// cancelling its intent.
func (s *Server) ReleaseHold(charge string) error {
	return s.onHold(charge, func(rec *record) {
		s.letGo(rec, rec.Charge, rec.Charge.Amount)
		rec.event("charge.refunded")
		if rec.Intent == nil {
			rec.event("refund.created")
		}
		s.cancelHeld(rec, "requested_by_customer")
	})
}

// CaptureHold captures an authorisation as the dashboard does; 0 stands for all of it.
func (s *Server) CaptureHold(charge string, amount int64) error {
	return s.onHold(charge, func(rec *record) {
		if amount == 0 || amount > rec.Charge.Amount {
			amount = rec.Charge.Amount
		}
		s.capture(rec, rec.Charge, amount)
		if rec.Intent != nil {
			rec.Intent.Status, rec.Intent.Received = succeeded, amount
			rec.event("payment_intent.succeeded")
		}
	})
}

// onHold changes copies of an authorised charge and of its intent.
func (s *Server) onHold(id string, change func(*record)) error {
	return s.change(func(st *state) *record {
		e := st.charges[id]
		if e == nil || e.cur.Status != "succeeded" || e.cur.Captured || e.cur.AmountRefunded > 0 {
			return nil
		}
		ch := *e.cur
		rec := &record{Op: opChange, Charge: &ch}
		if in := st.intents[ch.Intent]; in != nil {
			held := *in.cur
			rec.Intent = &held
		}
		change(rec)
		return rec
	})
}

// cancelHeld cancels the intent of a charge that was let go of, if there is one.
func (s *Server) cancelHeld(rec *record, reason string) {
	if rec.Intent == nil {
		return
	}
	rec.Intent.Status, rec.Intent.Reason = canceled, reason
	rec.Intent.CanceledAt = s.now().Unix()
	rec.event("payment_intent.canceled")
}
