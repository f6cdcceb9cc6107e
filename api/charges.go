package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"paidonce/charges"
	"paidonce/idemkeys"
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
	x, r := exchangeOf(c), c.Request()
	sent, e := readParameters(c.Response(), r, s.cfg.MaxBody, chargeShape)
	if e != nil {
		return e
	}
	wanted, e := chargeParams(sent)
	if e != nil {
		return e
	}
	req := idemkeys.Request{
		AccountID: x.identity.AccountID, APIKeyID: x.identity.APIKeyID, Key: x.key, RequestID: x.id,
		Fingerprint: idemkeys.NewFingerprint(r.Method, r.URL.EscapedPath(), canonicalQuery(r.URL.RawQuery), sent.canonical()),
	}
	if params.Prefer != nil {
		if wait, asked := preferredWait([]string{*params.Prefer}); asked {
			req.Wait = wait
			c.Response().Header()["Preference-Applied"] = []string{appliedWait(wait)}
		}
	}
	// Whoever asked may hang up: the work goes on, and the same key learns what came of it. The engine sets the deadlines.
	res, err := s.cfg.Charges.Create(context.WithoutCancel(r.Context()), req, wanted)
	x.operation = res.OperationID
	// The claim has checked the API key for this request's own work only. What others' requests came to needs the same check. That the
	// database cannot be asked tells nothing, and would keep this check from an answer, too.
	fresh := err == nil && res.OriginalRequest == x.id
	if !fresh && !errors.Is(err, idemkeys.ErrUnavailable) {
		if e := s.authenticateAgain(c, x); e != nil {
			return e
		}
	}
	if err != nil {
		return engineFailure(x, err)
	}
	writeResult(c, x, res)
	return nil
}

// engineFailure is fromEngine with what the log should know.
func engineFailure(x *exchange, err error) *apiError {
	var parked *idemkeys.Parked
	if errors.As(err, &parked) {
		x.operation = parked.OperationID
	}
	return fromEngine(err)
}

// authenticateAgain asks the database whether the API key still stands. An account's keys share its idempotency keys, but a revoked API key
// learns nothing.
func (s *Server) authenticateAgain(c echo.Context, x *exchange) *apiError {
	ctx, cancel := detached(c)
	defer cancel()
	identity, err := s.cfg.Accounts.Authenticate(ctx, x.apiKey)
	switch {
	case err != nil:
		return fromAuthenticator(err)
	case identity.AccountID != x.identity.AccountID:
		return faultAPIKeyInvalid.because(errors.New("the API key changed its account"))
	}
	return nil
}

// chargeParams is what the parameters ask for, valid as far as can be known here.
func chargeParams(p *parameters) (charges.Params, *apiError) {
	for _, required := range [...]string{"amount", "currency"} {
		if _, given := p.get(required); !given {
			return charges.Params{}, faultParameterMissing.of(required, "%s is required.", required)
		}
	}
	wanted := charges.Params{
		Amount: p.integer("amount"), Currency: lowerASCII(p.text("currency")), Customer: p.text("customer"), Source: p.text("source"),
		Capture: true, Description: p.text("description"), Metadata: p.pairs("metadata"),
		StatementDescriptorSuffix: p.text("statement_descriptor_suffix"), ReceiptEmail: p.text("receipt_email"),
	}
	if capture, given := p.get("capture"); given {
		wanted.Capture = capture.boolean
	}
	if err := wanted.Validate(); err != nil {
		return charges.Params{}, fromParams(err)
	}
	return wanted, nil
}

// GetCharge shows a charge as it is now.
func (s *Server) GetCharge(c echo.Context, id string) error {
	ctx, cancel := detached(c)
	defer cancel()
	charge, err := s.cfg.Charges.Get(ctx, exchangeOf(c).identity.AccountID, id)
	switch {
	case errors.Is(err, charges.ErrNotFound):
		return faultResourceMissing.of("id", "There is no such charge.")
	case err != nil:
		return faultUnavailable.because(err)
	}
	writeBody(c, http.StatusOK, idemkeys.Render(charge))
	return nil
}

// chargeList is ChargeList of openapi.yaml, with charges as the domain renders them.
type chargeList struct {
	Object  ChargeListObject `json:"object"`
	URL     ChargeListUrl    `json:"url"`
	HasMore bool             `json:"has_more"`
	Data    []charges.Charge `json:"data"`
}

// ListCharges shows a page of charges, newest first.
func (s *Server) ListCharges(c echo.Context, params ListChargesParams) error {
	f, e := listFilter(params)
	if e != nil {
		return e
	}
	ctx, cancel := detached(c)
	defer cancel()
	page, err := s.cfg.Charges.List(ctx, exchangeOf(c).identity.AccountID, f)
	switch {
	case errors.Is(err, charges.ErrNotFound):
		cursor := "starting_after"
		if f.EndingBefore != "" {
			cursor = "ending_before"
		}
		return faultCursorMissing.of(cursor, "%s names no charge of yours.", cursor)
	case err != nil:
		return faultUnavailable.because(err)
	}
	list := chargeList{Object: List, URL: V1charges, HasMore: page.HasMore, Data: page.Charges}
	if list.Data == nil {
		list.Data = []charges.Charge{}
	}
	writeBody(c, http.StatusOK, idemkeys.Render(list))
	return nil
}

const (
	limitDefault = 10  // Stripe's
	limitMax     = 100 // Stripe's; also what keeps a page within some 100 kB
	cursorMax    = 255 // bytes; no id is longer
)

func listFilter(p ListChargesParams) (charges.Filter, *apiError) {
	f := charges.Filter{Limit: limitDefault}
	if p.Limit != nil {
		if f.Limit = *p.Limit; f.Limit < 1 || f.Limit > limitMax {
			return f, faultParameterInteger.of("limit", "limit must be between 1 and %d.", limitMax)
		}
	}
	for _, t := range [...]struct {
		name string
		from *string
		to   *string
	}{{"starting_after", p.StartingAfter, &f.StartingAfter}, {"ending_before", p.EndingBefore, &f.EndingBefore}, {"customer", p.Customer, &f.Customer}} {
		if t.from == nil {
			continue
		}
		if *t.to = *t.from; len(*t.to) > cursorMax {
			return f, invalidParameter(t.name, "%s may have at most %d characters.", t.name, cursorMax)
		}
	}
	if f.StartingAfter != "" && f.EndingBefore != "" {
		return f, invalidParameter("ending_before", "Only one of starting_after and ending_before may be given.")
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
