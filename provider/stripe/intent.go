package stripe

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"

	sdk "github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/form"

	"paidonce/provider"
)

const intentsPath = "/v1/payment_intents"

// CreateIntent creates a payment intent that isn't confirmed, so that no money moves. The return
// URL isn't sent: Stripe takes it only with the confirmation.
func (p *Provider) CreateIntent(ctx context.Context, r *provider.ChargeRequest, _ string) (provider.IntentOutcome, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout) // for both exchanges, when a customer pays
	defer cancel()
	method := "automatic"
	if !r.Capture {
		method = "manual"
	}
	body, failed := p.intentBody(ctx, r, method)
	if failed != nil {
		return provider.IntentOutcome{}, failed
	}
	var i wireIntent
	res := p.post(ctx, intentsPath, r.IdempotencyKey, r.Tags, body, &i)
	refusal, failed := p.settle(res)
	switch {
	case failed != nil:
		return provider.IntentOutcome{}, failed
	case refusal != nil:
		return provider.IntentOutcome{Refusal: refusal, RequestID: p.requestID(res)}, nil
	case !i.known():
		return provider.IntentOutcome{}, p.unreadable(res, "a payment intent")
	case !i.Amount.is(r.Amount) || !sameCurrency(i.Currency, r.Currency):
		return provider.IntentOutcome{}, p.contradiction(res, "intent %s is over %d %s, asked for were %d %s",
			i.ID, i.Amount.or(r.Amount), i.Currency, r.Amount, r.Currency)
	case !i.Livemode.is(r.Livemode):
		return provider.IntentOutcome{}, p.contradiction(res, "intent %s has livemode %t", i.ID, i.Livemode.on)
	case !i.Metadata.are(r.Tags):
		return provider.IntentOutcome{}, p.contradiction(res, "intent %s carries the tags of another operation", i.ID)
	case i.CaptureMethod != "" && string(i.CaptureMethod) != method:
		return provider.IntentOutcome{}, p.contradiction(res, "intent %s has capture method %q, asked for was %s", i.ID, i.CaptureMethod, method)
	case !i.idle() || i.LatestCharge.ID != "":
		return provider.IntentOutcome{}, p.contradiction(res, "intent %s is new and is %s already", i.ID, i.Status)
	}
	p.clock.compare(res.header, i.Created.Time)
	i.Amount.assume(r.Amount)
	i.Livemode.assume(r.Livemode)
	out := p.intent(&i.intentFields)
	out.Currency, out.Tags = strings.ToLower(r.Currency), r.Tags
	return provider.IntentOutcome{Intent: out, RequestID: p.requestID(res)}, nil
}

func (p *Provider) intentBody(ctx context.Context, r *provider.ChargeRequest, method string) (*form.Values, *provider.Error) {
	pays := r.Source
	if pays == "" && !r.PayLater {
		var failed *provider.Error
		if pays, failed = p.customerPays(ctx, r.Customer); failed != nil {
			return nil, failed
		}
	}
	body := &form.Values{}
	body.Add("amount", strconv.FormatInt(r.Amount, 10))
	body.Add("currency", r.Currency)
	body.Add("capture_method", method)
	types := r.PaymentMethodTypes
	if len(types) == 0 && r.AutomaticMethods == nil && !r.PayLater {
		types = []string{"card"}
	}
	addTypes(body, types)
	if a := r.AutomaticMethods; a != nil {
		body.Add("automatic_payment_methods[enabled]", strconv.FormatBool(a.Enabled))
		addGiven(body, [2]string{"automatic_payment_methods[allow_redirects]", a.AllowRedirects})
	}
	addSource(body, pays)
	addGiven(body, [][2]string{
		{"customer", r.Customer}, {"description", r.Description}, {"receipt_email", r.ReceiptEmail},
		{"statement_descriptor_suffix", r.StatementDescriptorSuffix}, {"setup_future_usage", r.SetupFutureUsage},
	}...)
	addShipping(body, r.Shipping)
	addMetadata(body, ownPairs(r), r.Metadata)
	return body, nil
}

func addTypes(body *form.Values, types []string) {
	for _, t := range types {
		body.Add("payment_method_types[]", t)
	}
}

// addSource adds what pays, if anything does: a token as the data of a payment method to be made.
func addSource(body *form.Values, source string) {
	switch {
	case strings.HasPrefix(source, "tok_"):
		body.Add("payment_method_data[type]", "card")
		body.Add("payment_method_data[card][token]", source)
	case source != "":
		body.Add("payment_method", source)
	}
}

// addGiven adds the fields that have a value.
func addGiven(body *form.Values, fields ...[2]string) {
	for _, f := range fields {
		if f[1] != "" {
			body.Add(f[0], f[1])
		}
	}
}

// customerPays gives what a customer pays with. A charge takes the customer's default source by
// itself; an intent that is confirmed in a call of its own doesn't. Nothing, or no such customer,
// is left to Stripe to refuse in its own words. A read that fails has executed nothing. Should the
// default change between two attempts while Stripe still has the first under its key, the second is
// refused for its other parameters: the callers look for the intent before they send again.
func (p *Provider) customerPays(ctx context.Context, id string) (string, *provider.Error) {
	var c wireCustomer
	res := p.get(ctx, "/v1/customers/"+url.PathEscape(id), nil, &c, oneObject)
	refusal, failed := p.settle(res)
	switch {
	case failed == nil && refusal != nil && p.missing(res, refusal):
		return "", nil
	case failed == nil && refusal != nil:
		failed = p.refusedRead(res, refusal)
	case failed == nil && (string(c.ID) != id || !isOrUnsaid(c.Object, "customer")):
		failed = p.unreadable(res, "the customer")
	}
	if failed != nil {
		if !failed.Kind.NotExecuted() {
			failed.Kind = provider.NotExecuted
		}
		failed.Message = p.clean("the customer could not be read: " + failed.Message)
		return "", failed
	}
	if c.DefaultSource != "" {
		return string(c.DefaultSource), nil
	}
	if c.Invoices.at == nil {
		return "", nil
	}
	return string(c.Invoices.at.DefaultMethod), nil
}

// ConfirmIntent charges what the intent is for. A refusal because of the intent's state is
// only then an outcome when that state is one in which no money moved: past its key's window Stripe
// would say the same about our own earlier confirmation.
func (p *Provider) ConfirmIntent(ctx context.Context, r provider.ConfirmRequest) (provider.IntentOutcome, error) {
	if r.IntentID == "" {
		return provider.IntentOutcome{}, noID("an intent")
	}
	body := &form.Values{}
	addSource(body, r.Source)
	addGiven(body, [][2]string{
		{"return_url", r.ReturnURL}, {"setup_future_usage", r.SetupFutureUsage}, {"receipt_email", r.ReceiptEmail},
	}...)
	for _, f := range [...]struct {
		name string
		on   bool
	}{{"off_session", r.OffSession}, {"error_on_requires_action", r.ErrorOnRequiresAction}} {
		if f.on {
			body.Add(f.name, "true")
		}
	}
	expandCharge(body)
	var i wireIntent
	res := p.post(ctx, intentsPath+"/"+url.PathEscape(r.IntentID)+"/confirm", r.IdempotencyKey, r.Tags, body, &i)
	refusal, failed := p.settle(res)
	if refusal != nil {
		refusal, failed = p.refusedIntent(res, r.IntentID, refusal)
	}
	switch out, err := p.answered(res, refusal, failed, &i, r.IntentID, "confirmed"); {
	case err != nil, out.Refusal != nil:
		return out, err
	case !i.Metadata.are(r.Tags):
		return provider.IntentOutcome{}, p.contradiction(res, "intent %s carries the tags of another operation", i.ID)
	}
	return p.withCharge(res, &i.intentFields, r.Tags)
}

// answered checks what every answer about an intent that is there has to be: a definite no, or that
// intent, whole, since such requests need not name an amount. done is what was asked for, as in
// errors.
func (p *Provider) answered(
	res *result, refusal *provider.Refusal, failed *provider.Error, i *wireIntent, id, done string,
) (provider.IntentOutcome, error) {
	switch {
	case failed != nil:
		return provider.IntentOutcome{}, failed
	case refusal != nil:
		return provider.IntentOutcome{Refusal: refusal, RequestID: p.requestID(res)}, nil
	case !i.whole():
		return provider.IntentOutcome{}, p.unreadable(res, "a payment intent")
	case string(i.ID) != id:
		return provider.IntentOutcome{}, p.contradiction(res, "intent %s was %s, asked for was %s", i.ID, done, id)
	}
	return provider.IntentOutcome{}, nil
}

// withCharge is a whole intent of the tags, whose charge has to be the intent's. A charge that
// failed may be of an earlier confirmation, and the intent's price another since then.
func (p *Provider) withCharge(res *result, i *intentFields, tags provider.Tags) (provider.IntentOutcome, error) {
	c := i.LatestCharge.charge
	if c != nil && (c.Status != "failed" && (c.Amount.n != i.Amount.n || !sameCurrency(c.Currency, string(i.Currency))) ||
		!c.Livemode.is(p.mode(i.Livemode)) || !c.Metadata.are(tags) || c.Intent != ref(i.ID)) {
		return provider.IntentOutcome{}, p.contradiction(res, "charge %s over %d %s isn't that of intent %s over %d %s",
			c.ID, c.Amount.n, c.Currency, i.ID, i.Amount.n, i.Currency)
	}
	out := p.intent(i)
	if out.Tags = tags; out.Charge != nil {
		out.Charge.Tags = tags
	}
	return provider.IntentOutcome{Intent: out, RequestID: p.requestID(res)}, nil
}

// refusedIntent decides what a refusal of a call about an intent says, by the intent that Stripe's
// error shows. Its latest charge may be older than its last error.
func (p *Provider) refusedIntent(res *result, id string, r *provider.Refusal) (*provider.Refusal, *provider.Error) {
	var e *sdk.Error
	errors.As(res.err, &e) // settle has made r of it
	shown := e.PaymentIntent
	if r.Decline {
		if r.ChargeID == "" && shown != nil && shown.ID == id && shown.LastPaymentError == nil && shown.LatestCharge != nil {
			r.ChargeID = p.clean(shown.LatestCharge.ID)
		}
		return r, nil
	}
	if e.Code != sdk.ErrorCodePaymentIntentUnexpectedState {
		return r, nil
	}
	if shown == nil || shown.ID != id || !(&intentFields{Status: word(shown.Status)}).idle() {
		// under the key, whatever becomes of the intent
		out := p.failure(res, provider.StoredFailure)
		out.Code, out.Message = r.Code, r.Message
		return nil, out
	}
	if last := shown.LastPaymentError; last != nil && shown.Status == sdk.PaymentIntentStatusRequiresPaymentMethod {
		failed := p.failedAttempt(&wireFailure{
			Type: text(last.Type), Code: text(last.Code), DeclineCode: text(last.DeclineCode), Message: text(last.Msg), Param: text(last.Param),
			Charge: ref(last.ChargeID),
		})
		failed.LastAttempt = true
		return failed, nil
	}
	return r, nil
}

// captureIntent captures the charge of an intent, which Stripe does only through the intent. Of an
// intent that is captured already it says what Capture tells of such a charge, so that callers
// need to know one code.
func (p *Provider) captureIntent(ctx context.Context, r provider.CaptureRequest) (provider.ChargeOutcome, error) {
	body := &form.Values{}
	body.Add("amount_to_capture", strconv.FormatInt(r.Amount, 10))
	expandCharge(body)
	var i wireIntent
	res := p.post(ctx, intentsPath+"/"+url.PathEscape(r.IntentID)+"/capture", r.IdempotencyKey, r.Tags, body, &i)
	out, over, err := p.noCharge(res)
	if out.Refusal != nil && out.Refusal.Code == string(sdk.ErrorCodePaymentIntentUnexpectedState) {
		return p.notCapturable(res, r.IntentID, out)
	}
	if over {
		return out, err
	}
	i.share()
	c := i.LatestCharge.charge
	switch {
	case !i.known() || c == nil:
		return provider.ChargeOutcome{}, p.unreadable(res, "a payment intent with its charge")
	case string(i.ID) != r.IntentID || string(c.Intent) != r.IntentID || r.ChargeID != "" && string(c.ID) != r.ChargeID:
		return provider.ChargeOutcome{}, p.contradiction(res, "charge %s of intent %s was captured, asked for was %s of %s",
			c.ID, i.ID, r.ChargeID, r.IntentID)
	}
	return p.capturedCharge(res, c, r.Amount)
}

func (p *Provider) notCapturable(res *result, id string, out provider.ChargeOutcome) (provider.ChargeOutcome, error) {
	var e *sdk.Error
	errors.As(res.err, &e)
	if e.PaymentIntent != nil && e.PaymentIntent.ID == id && e.PaymentIntent.Status == sdk.PaymentIntentStatusSucceeded {
		out.Refusal.Code = string(sdk.ErrorCodeChargeAlreadyCaptured)
		out.Refusal.AlreadyCaptured = true
		return out, nil
	}
	var failed *provider.Error
	if out.Refusal, failed = p.refusedIntent(res, id, out.Refusal); failed != nil {
		return provider.ChargeOutcome{}, failed
	}
	return out, nil
}

// GetIntent reads one intent with its latest charge. Only Stripe's own "no such payment_intent" is
// nil, nil.
func (p *Provider) GetIntent(ctx context.Context, id string) (*provider.Intent, error) {
	query := &form.Values{}
	expandCharge(query)
	var i wireIntent
	if found, err := p.read(ctx, intentsPath+"/", id, query, "a payment intent", &i); !found {
		return nil, err
	}
	return p.intent(&i.intentFields), nil
}

// FindIntent lists the intents of the window and gives every one that carries exactly l.Tags,
// whatever became of it.
func (p *Provider) FindIntent(ctx context.Context, l provider.Lookup) ([]provider.Intent, error) {
	return p.intents.find(ctx, l)
}

func expandCharge(v *form.Values) { v.Add("expand[]", "latest_charge") }
