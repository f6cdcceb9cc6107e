package stripesim

import (
	"errors"
	"net/http"
)

// What happens at Stripe days after the request, or without one: bank debits that clear or bounce,
// refunds that are carried out, and refunds that somebody makes in the dashboard.

// pending is the status of what is under way: of a bank debit, and of a refund of one.
const pending = "pending"

// EndDebit ends a charge by bank debit: it clears, or the bank refuses it with a decline code.
func (s *Server) EndDebit(id, declineCode string) error {
	if _, known := declines[declineCode]; declineCode != "" && !known {
		return errors.New("no such decline code: " + declineCode)
	}
	return s.change(func(st *state) *record {
		e := st.charges[id]
		if e == nil || e.cur.Status != pending {
			return nil
		}
		ch := *e.cur
		rec := &record{Op: opChange, Charge: &ch}
		if of := st.intents[ch.Intent]; of != nil {
			in := *of.cur
			rec.Intent = &in
		}
		if declineCode == "" {
			ch.Status = succeeded
			rec.event("charge.succeeded")
			if rec.Intent != nil {
				rec.Intent.Status, rec.Intent.Received = succeeded, ch.Amount
				rec.event("payment_intent.succeeded")
			}
			return rec
		}
		ch.Status, ch.Decline, ch.Captured, ch.AmountCaptured = "failed", declineCode, false, 0
		rec.event("charge.failed")
		if rec.Intent != nil {
			d := declines[declineCode]
			rec.Intent.fail(&apiError{
				Status: http.StatusPaymentRequired, Type: typeCard, Code: d.code, DeclineCode: declineCode, Message: d.message,
				Param: d.param, Charge: ch.ID,
			})
			rec.event("payment_intent.payment_failed")
		}
		return rec
	})
}

// debit leaves a charge under way, as a bank debit is for days.
func (rec *record) debit(ch *charge) {
	ch.Status, ch.Captured, ch.AmountCaptured = pending, true, ch.Amount
	rec.event("charge.pending")
}

// EndRefund changes the status of a refund that is under way: to succeeded, canceled or
// requires_action.
func (s *Server) EndRefund(id, status string) error {
	if !has("succeeded canceled requires_action", status) {
		return errors.New("status is succeeded, canceled or requires_action")
	}
	return s.change(func(st *state) *record {
		e := st.refunds[id]
		if e == nil || !has("pending requires_action", e.cur.Status) || e.cur.Status == status {
			return nil
		}
		re, ch := *e.cur, *st.charges[e.cur.Charge].cur
		re.Status = status
		if status == canceled {
			ch.AmountRefunded -= re.Amount
		}
		rec := &record{Op: opChange, Charge: &ch, Refund: &re}
		rec.event("refund.updated")
		rec.event("charge.refund.updated")
		return rec
	})
}

// DashboardRefund is a refund that somebody makes in Stripe's dashboard; amount 0: of all that is
// left. refundFirst says which of its two events comes first: Stripe promises no order.
type DashboardRefund struct {
	Charge      string `json:"charge"`
	Amount      int64  `json:"amount"`
	Reason      string `json:"reason"`
	Status      string `json:"status"` // empty: succeeded
	RefundFirst bool   `json:"refund_first"`
}

// RefundInDashboard makes such a refund and returns its id.
func (s *Server) RefundInDashboard(of DashboardRefund) (id string, err error) {
	err = s.change(func(st *state) *record {
		e := st.charges[of.Charge]
		if e == nil {
			return nil
		}
		ch := *e.cur
		rest := ch.Amount - ch.AmountRefunded
		amount := of.Amount
		if amount == 0 {
			amount = rest
		}
		if amount < 0 || refundable(e, amount, rest) != nil {
			return nil
		}
		ch.AmountRefunded += amount
		rec := &record{Op: opChange, Charge: &ch, Refund: &refund{
			ID: newID("re_3"), Created: s.now().Unix(), Live: ch.Live, Charge: ch.ID, Intent: ch.Intent, Amount: amount,
			Currency: ch.Currency, Reason: of.Reason, Status: refundStatus(&ch),
		}}
		if of.Status != "" {
			rec.Refund.Status = of.Status
		}
		id = rec.Refund.ID
		if of.RefundFirst {
			rec.event("refund.created")
		}
		rec.event("charge.refunded")
		if !of.RefundFirst {
			rec.event("refund.created")
		}
		return rec
	})
	return id, err
}

// refundStatus is the status of a new refund: that of a bank debit takes days as well.
func refundStatus(ch *charge) string {
	if cardOf(ch.Source).debit {
		return pending
	}
	return succeeded
}

func (s *Server) postEndDebit(body []byte, _ *http.Request) (any, error) {
	var in struct {
		Charge  string `json:"charge"`
		Decline string `json:"decline_code"`
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	return done{}, s.EndDebit(in.Charge, in.Decline)
}

func (s *Server) postEndRefund(body []byte, _ *http.Request) (any, error) {
	var in struct {
		Refund string `json:"refund"`
		Status string `json:"status"`
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	return done{}, s.EndRefund(in.Refund, in.Status)
}

func (s *Server) postDashboardRefund(body []byte, _ *http.Request) (any, error) {
	var in DashboardRefund
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	id, err := s.RefundInDashboard(in)
	return map[string]string{"id": id}, err
}
