package api

import (
	"github.com/labstack/echo/v4"

	"paidonce/charges"
	"paidonce/problem"
)

// createRefund gives money of a charge back once for the request's key.
func (s *Server) createRefund(c echo.Context, r *request) error {
	return idempotent(s, c, r, refundParams, s.cfg.Charges.Refund)
}

func refundParams(p *parameters) (charges.RefundParams, *problem.Error) {
	if e := amountAbove(p, "amount", "leave it out for all that is left"); e != nil {
		return charges.RefundParams{}, e
	}
	return valid(charges.RefundParams{
		Charge: p.text("charge"), PaymentIntent: p.text("payment_intent"),
		Amount: p.integer("amount"), Reason: p.text("reason"), Metadata: p.pairs("metadata"),
		WithCharge: p.expands("charge"),
	})
}

// getRefund shows a refund as it is now.
func (s *Server) getRefund(c echo.Context, r *request) error {
	return showOne(c, r, "refund", "charge", s.cfg.Charges.GetRefund)
}

// listRefunds shows a page of refunds, newest first.
func (s *Server) listRefunds(c echo.Context, r *request) error {
	if e := oneCursor(r.query); e != nil {
		return e
	}
	f := charges.RefundFilter{
		Limit: int(r.query.integer("limit")), StartingAfter: r.query.text("starting_after"),
		EndingBefore: r.query.text("ending_before"),
		Charge:       r.query.text("charge"), Intent: r.query.text("payment_intent"),
		WithCharge: r.query.expands("charge"),
	}
	f.CreatedFrom, f.CreatedBefore = r.query.created()
	return list(c, r, "refund", f, f.EndingBefore, s.cfg.Charges.ListRefunds,
		func(p charges.RefundPage) ([]charges.Refund, bool) { return p.Refunds, p.HasMore })
}
