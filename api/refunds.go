package api

import (
	"github.com/labstack/echo/v4"

	"paidonce/charges"
)

// refundShape is RefundParams of openapi.yaml.
var refundShape = shape{
	{name: "amount", kind: integer},
	{name: "charge", kind: text},
	{name: "metadata", kind: pairs},
	{name: "reason", kind: text},
}

// refundListShape is the query of listRefunds.
var refundListShape = shape{
	{name: "charge", kind: text},
	{name: "ending_before", kind: text},
	{name: "limit", kind: integer},
	{name: "starting_after", kind: text},
}

// CreateRefund gives money of a charge back once for the request's key.
func (s *Server) CreateRefund(c echo.Context, params CreateRefundParams) error {
	return once(s, c, params.Prefer, refundShape, refundParams, s.cfg.Charges.Refund)
}

func refundParams(p *parameters) (charges.RefundParams, *apiError) {
	amount, e := amountToMove(p)
	if e != nil {
		return charges.RefundParams{}, e
	}
	return valid(charges.RefundParams{Charge: p.text("charge"), Amount: amount, Reason: p.text("reason"), Metadata: p.pairs("metadata")})
}

// GetRefund shows a refund as it is now.
func (s *Server) GetRefund(c echo.Context, id string) error {
	return show(c, id, "refund", s.cfg.Charges.GetRefund)
}

// ListRefunds shows a page of refunds, newest first.
func (s *Server) ListRefunds(c echo.Context, params ListRefundsParams) error {
	f, e := refundFilter(params)
	if e != nil {
		return e
	}
	return list(c, "refund", string(V1refunds), f, f.EndingBefore, s.cfg.Charges.ListRefunds, func(p charges.RefundPage) ([]charges.Refund, bool) { return p.Refunds, p.HasMore })
}

func refundFilter(p ListRefundsParams) (f charges.RefundFilter, e *apiError) {
	f.Limit, e = pageBounds(p.Limit, queryText{"starting_after", p.StartingAfter, &f.StartingAfter},
		queryText{"ending_before", p.EndingBefore, &f.EndingBefore}, queryText{"charge", p.Charge, &f.Charge})
	return f, e
}
