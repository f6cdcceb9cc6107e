package api

import (
	"context"
	"time"

	"github.com/labstack/echo/v4"

	"paidonce/charges"
	"paidonce/problem"
)

// createCharge creates a charge once for the request's key.
func (s *Server) createCharge(c echo.Context, r *request) error {
	return idempotent(s, c, r, func(p *parameters) (charges.Params, *problem.Error) {
		return chargeParams(p, r.identity.ReferenceFrom)
	}, s.cfg.Charges.Create)
}

// captureCharge takes the money of an authorised charge once for the request's key.
func (s *Server) captureCharge(c echo.Context, r *request) error {
	return idempotent(s, c, r, func(p *parameters) (charges.CaptureParams, *problem.Error) {
		if e := amountAbove(p, "amount", "leave it out for all that is left"); e != nil {
			return charges.CaptureParams{}, e
		}
		return valid(charges.CaptureParams{
			Charge: r.param, Amount: p.integer("amount"), WithRefunds: p.expands("refunds"),
		})
	}, s.cfg.Charges.Capture)
}

// updateCharge changes what a charge says beside its money.
func (s *Server) updateCharge(c echo.Context, r *request) error {
	sent, e := s.readBody(c, r)
	if e != nil {
		return e
	}
	wanted, e := valid(updateParams(r.param, sent))
	if e != nil {
		return e
	}
	res, err := s.cfg.Charges.Update(context.WithoutCancel(c.Request().Context()),
		keyRequest(c, r, sent), wanted)
	return writeLocal(c, r, res, err, "charge")
}

func updateParams(charge string, p *parameters) charges.UpdateParams {
	text := func(name string) *string {
		if v, given := p.get(name); given {
			return &v.text // empty when it is unset
		}
		return nil
	}
	wanted := charges.UpdateParams{
		Charge: charge, Description: text("description"), ReceiptEmail: text("receipt_email"),
		WithRefunds: p.expands("refunds"),
	}
	wanted.Metadata, wanted.NoMetadata = p.changes("metadata")
	if v, given := p.get("shipping"); given {
		wanted.NoShipping, wanted.Shipping = v.unset, charges.ShippingFrom(p.within("shipping"))
	}
	return wanted
}

// cancelCharge lets go of an authorised charge, or ends one that waits for its payer, once for the
// request's key.
func (s *Server) cancelCharge(c echo.Context, r *request) error {
	return idempotent(s, c, r, func(*parameters) (charges.CancelParams, *problem.Error) {
		return valid(charges.CancelParams{Charge: r.param})
	}, s.cfg.Charges.Cancel)
}

// amountAbove refuses an amount of 0 or less. It may be left out; the domain takes 0 for that, so
// an explicit one must not get there. otherwise says what leaving it out means.
func amountAbove(p *parameters, name, otherwise string) *problem.Error {
	if amount, given := p.get(name); given && amount.integer < charges.AmountMin {
		return problem.ParameterInteger.Of(name, "%s must be at least %d, in minor units; %s.",
			name, charges.AmountMin, otherwise)
	}
	return nil
}

// missingOf refuses parameters without one that is required.
func missingOf(p *parameters, names ...string) *problem.Error {
	for _, required := range names {
		if _, given := p.get(required); !given {
			return problem.ParameterMissing.Of(required, "%s is required.", required)
		}
	}
	return nil
}

// valid lets the domain check what a request asks for.
func valid[P interface{ Validate() error }](wanted P) (P, *problem.Error) {
	if err := wanted.Validate(); err != nil {
		return wanted, fromParams(err)
	}
	return wanted, nil
}

// chargeParams is what the parameters ask for, valid as far as can be known here. referenceFrom is
// the key of metadata that holds the reference of a charge that names none; empty: there is none.
func chargeParams(p *parameters, referenceFrom string) (charges.Params, *problem.Error) {
	if e := missingOf(p, "amount", "currency"); e != nil {
		return charges.Params{}, e
	}
	wanted := commonParams(p, referenceFrom)
	wanted.Source, wanted.Capture = p.text("source"), true
	wanted.WithRefunds = p.expands("refunds")
	wanted.StatementDescriptor = p.text("statement_descriptor")
	wanted.Shipping = charges.ShippingFrom(p.within("shipping"))
	if capture, given := p.get("capture"); given {
		wanted.Capture = capture.boolean
	}
	return valid(wanted)
}

// commonParams is what charges and payment intents take alike.
func commonParams(p *parameters, referenceFrom string) charges.Params {
	lowerCurrency(p)
	wanted := charges.Params{
		Amount: p.integer("amount"), Currency: p.text("currency"), Customer: p.text("customer"),
		Description: p.text("description"), Metadata: p.pairs("metadata"),
		StatementDescriptorSuffix: p.text("statement_descriptor_suffix"),
		ReceiptEmail:              p.text("receipt_email"),
		ReturnURL:                 p.text("return_url"), OffSession: p.flag("off_session"),
		Reference: p.text("reference"), DuplicateOf: p.text("duplicate_of"),
	}
	if wanted.Reference == "" && referenceFrom != "" {
		wanted.Reference, wanted.ReferenceFrom = wanted.Metadata[referenceFrom], referenceFrom
	}
	return wanted
}

// lowerCurrency has the currency in lower case, also in the canonical form: USD and usd are one
// request.
func lowerCurrency(p *parameters) {
	if currency, given := p.get("currency"); given {
		currency.text = lowerASCII(currency.text)
	}
}

// getCharge shows a charge as it is now.
func (s *Server) getCharge(c echo.Context, r *request) error {
	return showOne(c, r, "charge", "refunds", s.cfg.Charges.Get)
}

// listCharges shows a page of charges, newest first.
func (s *Server) listCharges(c echo.Context, r *request) error {
	if e := oneCursor(r.query); e != nil {
		return e
	}
	f := charges.Filter{
		Limit: int(r.query.integer("limit")), StartingAfter: r.query.text("starting_after"),
		EndingBefore: r.query.text("ending_before"),
		Customer:     r.query.text("customer"), Status: r.query.text("status"),
		Intent: r.query.text("payment_intent"), Reference: r.query.text("reference"),
		WithRefunds: r.query.expands("refunds"),
	}
	f.CreatedFrom, f.CreatedBefore = r.query.created()
	return list(c, r, "charge", f, f.EndingBefore, s.cfg.Charges.List,
		func(p charges.Page) ([]charges.Charge, bool) { return p.Charges, p.HasMore })
}

// created returns the half-open range of times within the bounds; nil is no bound.
func (p *parameters) created() (from, before *time.Time) {
	if v, given := p.get("created"); given {
		return timeRange(v.members)
	}
	return nil, nil
}

// timeRange returns the half-open range of times whose Unix seconds are within the bounds.
func timeRange(bounds []member) (from, before *time.Time) {
	for _, b := range bounds {
		switch b.name {
		case "": // that second alone
			at, next := unix(b.integer, false), unix(b.integer, true)
			return &at, &next
		case "gte", "gt":
			if t := unix(b.integer, b.name == "gt"); from == nil || t.After(*from) {
				from = &t
			}
		case "lt", "lte":
			if t := unix(b.integer, b.name == "lte"); before == nil || t.Before(*before) {
				before = &t
			}
		}
	}
	return from, before
}

// yearMax is the first second of the year 10000. Bounds are clamped to the years that both Go and
// the database can express; no charge is outside, so nothing changes.
const yearMax = 253402300800

// unix is a time, or the second that follows it.
func unix(seconds int64, next bool) time.Time {
	switch {
	case seconds < 0:
		return time.Unix(0, 0)
	case seconds >= yearMax:
		seconds = yearMax - 1
	}
	if next {
		seconds++
	}
	return time.Unix(seconds, 0)
}
