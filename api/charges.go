package api

import (
	"time"

	"github.com/labstack/echo/v4"

	"paidonce/charges"
)

// chargeShape is ChargeParams of openapi.yaml.
var chargeShape = shape{
	{name: "amount", kind: integer},
	{name: "capture", kind: boolean},
	{name: "currency", kind: text},
	{name: "customer", kind: text},
	{name: "description", kind: text},
	{name: "metadata", kind: pairs},
	{name: "receipt_email", kind: text},
	{name: "source", kind: text},
	{name: "statement_descriptor_suffix", kind: text},
}

// captureShape is CaptureParams of openapi.yaml.
var captureShape = shape{
	{name: "amount", kind: integer},
}

// listShape is the query of listCharges.
var listShape = shape{
	{name: "created", kind: bounds, members: []string{"gt", "gte", "lt", "lte"}},
	{name: "customer", kind: text},
	{name: "ending_before", kind: text},
	{name: "limit", kind: integer},
	{name: "starting_after", kind: text},
	{name: "status", kind: text},
}

// CreateCharge makes a charge once for the request's key.
func (s *Server) CreateCharge(c echo.Context, params CreateChargeParams) error {
	return once(s, c, params.Prefer, chargeShape, chargeParams, s.cfg.Charges.Create)
}

// CaptureCharge takes the money of an authorised charge once for the request's key.
func (s *Server) CaptureCharge(c echo.Context, id string, params CaptureChargeParams) error {
	return once(s, c, params.Prefer, captureShape, func(p *parameters) (charges.CaptureParams, *apiError) {
		amount, e := amountToMove(p)
		if e != nil {
			return charges.CaptureParams{}, e
		}
		return valid(charges.CaptureParams{Charge: id, Amount: amount})
	}, s.cfg.Charges.Capture)
}

// amountToMove reads the amount of a capture or refund; 0 when it is not given, which the domain takes for all that there is. So a given 0 must not
// come through.
func amountToMove(p *parameters) (int64, *apiError) {
	amount, given := p.get("amount")
	switch {
	case !given:
		return 0, nil
	case amount.integer < charges.AmountMin:
		return 0, faultParameterInteger.of("amount", "amount must be at least %d, in minor units; leave it out for all that is left.", charges.AmountMin)
	}
	return amount.integer, nil
}

// valid has the domain look at what a request asks for.
func valid[P interface{ Validate() error }](wanted P) (P, *apiError) {
	if err := wanted.Validate(); err != nil {
		return wanted, fromParams(err)
	}
	return wanted, nil
}

// chargeParams is what the parameters ask for, valid as far as can be known here.
func chargeParams(p *parameters) (charges.Params, *apiError) {
	for _, required := range [...]string{"amount", "currency"} {
		if _, given := p.get(required); !given {
			return charges.Params{}, faultParameterMissing.of(required, "%s is required.", required)
		}
	}
	if currency, given := p.get("currency"); given {
		currency.text = lowerASCII(currency.text) // also in the canonical form: USD and usd are one request
	}
	wanted := charges.Params{
		Amount: p.integer("amount"), Currency: p.text("currency"), Customer: p.text("customer"), Source: p.text("source"),
		Capture: true, Description: p.text("description"), Metadata: p.pairs("metadata"),
		StatementDescriptorSuffix: p.text("statement_descriptor_suffix"), ReceiptEmail: p.text("receipt_email"),
	}
	if capture, given := p.get("capture"); given {
		wanted.Capture = capture.boolean
	}
	return valid(wanted)
}

// GetCharge shows a charge as it is now.
func (s *Server) GetCharge(c echo.Context, id string) error {
	return show(c, id, "charge", s.cfg.Charges.Get)
}

// ListCharges shows a page of charges, newest first.
func (s *Server) ListCharges(c echo.Context, params ListChargesParams) error {
	f, e := listFilter(params)
	if e != nil {
		return e
	}
	return list(c, "charge", string(V1charges), f, f.EndingBefore, s.cfg.Charges.List, func(p charges.Page) ([]charges.Charge, bool) { return p.Charges, p.HasMore })
}

func listFilter(p ListChargesParams) (f charges.Filter, e *apiError) {
	if f.Limit, e = pageBounds(p.Limit, queryText{"starting_after", p.StartingAfter, &f.StartingAfter},
		queryText{"ending_before", p.EndingBefore, &f.EndingBefore}, queryText{"customer", p.Customer, &f.Customer}); e != nil {
		return f, e
	}
	if p.Status != nil {
		switch *p.Status {
		case ChargeStatusPending, ChargeStatusSucceeded, ChargeStatusFailed:
			f.Status = string(*p.Status)
		default:
			return f, invalidParameter("status", "status must be pending, succeeded or failed.")
		}
	}
	if p.Created != nil {
		f.CreatedFrom, f.CreatedBefore = timeRange(*p.Created)
	}
	return f, nil
}

// timeRange is the half-open range of times whose Unix seconds are within the bounds.
func timeRange(r TimeRange) (from, before *time.Time) {
	atLeast := func(t *time.Time) {
		if from == nil || t.After(*from) {
			from = t
		}
	}
	below := func(t *time.Time) {
		if before == nil || t.Before(*before) {
			before = t
		}
	}
	if r.Gte != nil {
		atLeast(unix(*r.Gte, 0))
	}
	if r.Gt != nil {
		atLeast(unix(*r.Gt, 1))
	}
	if r.Lt != nil {
		below(unix(*r.Lt, 0))
	}
	if r.Lte != nil {
		below(unix(*r.Lte, 1))
	}
	return from, before
}

// yearMax is the first second that no charge will see: the year 10000. Bounds are clamped to the years that both Go and the database can
// express; no charge is outside, so nothing changes.
const yearMax = 253402300800

func unix(seconds, more int64) *time.Time {
	t := time.Unix(min(max(seconds, 0), yearMax-1)+more, 0)
	if seconds < 0 {
		t = time.Unix(0, 0)
	}
	return &t
}
