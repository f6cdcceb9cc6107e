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
	var f charges.RefundFilter
	var e *apiError
	if f.Limit, e = pageBounds(params.Limit, queryText{"starting_after", params.StartingAfter, &f.StartingAfter},
		queryText{"ending_before", params.EndingBefore, &f.EndingBefore}, queryText{"charge", params.Charge, &f.Charge}); e != nil {
		return e
	}
	ctx, cancel := detached(c)
	defer cancel()
	page, err := s.cfg.Charges.ListRefunds(ctx, exchangeOf(c).identity.AccountID, f)
	if err != nil {
		return fromList(err, "refund", f.EndingBefore)
	}
	writePage(c, string(V1refunds), page.Refunds, page.HasMore)
	return nil
}
