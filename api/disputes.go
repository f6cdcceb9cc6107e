package api

import (
	"github.com/labstack/echo/v4"

	"paidonce/charges"
)

// getDispute shows a dispute as it is now.
func (s *Server) getDispute(c echo.Context, r *request) error {
	return showOne(c, r, "dispute", "charge", s.cfg.Charges.GetDispute)
}

// listDisputes shows a page of disputes, newest first.
func (s *Server) listDisputes(c echo.Context, r *request) error {
	if e := oneCursor(r.query); e != nil {
		return e
	}
	f := charges.DisputeFilter{
		Limit: int(r.query.integer("limit")), StartingAfter: r.query.text("starting_after"),
		EndingBefore: r.query.text("ending_before"), Charge: r.query.text("charge"),
		WithCharge: r.query.expands("charge"),
	}
	if created, given := r.query.get("created"); given {
		f.CreatedFrom, f.CreatedBefore = timeRange(created.members)
	}
	return list(c, r, "dispute", f, f.EndingBefore, s.cfg.Charges.ListDisputes,
		func(p charges.DisputePage) ([]charges.Dispute, bool) { return p.Disputes, p.HasMore })
}
