package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"paidonce/api"
	"paidonce/internal/race"
	online "paidonce/internal/shop"
	"paidonce/problem"
	"paidonce/provider/stripesim"
)

// fuzzRequests is how many requests are sent at least; PAIDONCE_FUZZ_REQUESTS asks for more.
const fuzzRequests = 5000

// leniencies are what the server takes although openapi.yaml forbids it in general, on purpose.
var leniencies = []struct {
	where  func(*place) bool
	damage []string // names of damages; "query" is what the schemas say of a query
}{
	// The query of a request that moves money is not read: it only belongs to what the key stands
	// for.
	{(*place).keyed, []string{"query", "not a query", "given twice in the query"}},
	// Whoever asks about health or delivers provider events may add to the URL.
	{func(p *place) bool { return !p.secured() }, []string{"query", "not a query", "given twice in the query"}},
	// The provider's bytes are signed and kept as they come; of what they say only the described
	// members are read.
	{func(p *place) bool { return p.op.OperationID == "receiveStripeEvent" }, []string{
		"another media type", "JSON as a form", "given twice", "NUL", "not UTF-8", "half a surrogate pair",
	}},
}

func lenient(p *place, damage string) bool {
	for _, l := range leniencies {
		if l.where(p) && slices.Contains(l.damage, damage) {
			return true
		}
	}
	return false
}

// refusals are the reasons for which a request is refused (400) that the schemas allow. Each is
// said in openapi.yaml in words, as OpenAPI 3.0 has no other way to say it. code may end with *.
var refusals = []struct{ operation, code, param string }{
	// not every three letters are a currency
	{"createCharge", "invalid_currency", "currency"},
	// at least one of source and customer
	{"createCharge", "parameter_missing", "source"},
	// duplicate_of goes with a reference, which is printable
	{"createCharge", "parameter_missing", "reference"},
	{"createCharge", "parameter_invalid", "reference"},
	{"createCharge", "amount_too_large", "amount"},     // more than the currency allows
	{"createCharge", "email_invalid", "receipt_email"}, // an address
	{"updateCharge", "email_invalid", "receipt_email"}, // an address
	// texts of which one is a letter, and an address that is not empty
	{"createCharge", "parameter_invalid", "statement_descriptor*"},
	{"createCharge", "parameter_missing", "shipping[address]"},
	{"updateCharge", "parameter_missing", "shipping[address]"},
	// only with the other flow
	{"createCharge", "parameter_invalid", "return_url"},
	{"createCharge", "parameter_invalid", "off_session"},
	{"createPaymentIntent", "invalid_currency", "currency"},
	{"createPaymentIntent", "parameter_missing", "reference"},
	{"createPaymentIntent", "parameter_invalid", "reference"},
	{"createPaymentIntent", "amount_too_large", "amount"},
	{"createPaymentIntent", "email_invalid", "receipt_email"},
	{"createPaymentIntent", "parameter_invalid", "return_url"}, // only with a confirmation
	{"createPaymentIntent", "parameter_invalid", "off_session"},
	{"createPaymentIntent", "parameter_invalid", "error_on_requires_action"},
	{"createPaymentIntent", "parameter_invalid", "payment_method_types"}, // not both
	{"updatePaymentIntent", "invalid_currency", "currency"},
	{"updatePaymentIntent", "amount_too_large", "amount"},
	{"updatePaymentIntent", "email_invalid", "receipt_email"},
	{"confirmPaymentIntent", "email_invalid", "receipt_email"},
	{"capturePaymentIntent", "amount_too_large", "amount_to_capture"},
	// how the intent stands
	{"updatePaymentIntent", "payment_intent_unexpected_state", "id"},
	{"confirmPaymentIntent", "payment_intent_unexpected_state", "id"},
	// without a means of payment, says the provider
	{"confirmPaymentIntent", "payment_intent_unexpected_state", ""},
	{"createPaymentIntent", "payment_intent_unexpected_state", ""},
	{"capturePaymentIntent", "payment_intent_unexpected_state", "id"},
	{"cancelPaymentIntent", "payment_intent_unexpected_state", "id"},
	{"captureCharge", "charge_*", "id"},             // how the charge stands
	{"captureCharge", "amount_too_large", "amount"}, // more than is authorised
	{"cancelCharge", "charge_*", "id"},              // how the charge stands
	// only all of what is authorised
	{"createRefund", "charge_not_captured", "amount"},
	{"createRefund", "charge_*", "charge"}, // how the charge stands
	{"createRefund", "charge_*", "payment_intent"},
	{"createRefund", "payment_intent_unexpected_state", "payment_intent"},
	// one of charge and payment_intent
	{"createRefund", "parameter_missing", "charge"},
	{"createRefund", "parameter_invalid", "payment_intent"},
	{"createRefund", "amount_too_large", "amount"}, // more than is left
	{"*", "parameter_invalid", "metadata*"},        // the names of metadata
	{"*", "resource_missing", "starting_after"},    // a cursor that names nothing
	{"*", "resource_missing", "ending_before"},     // a cursor that names nothing
	{"*", "parameter_invalid", "ending_before"},    // not both cursors
	// an address on the public Internet
	{"putWebhookEndpoint", "parameter_invalid", "url"},
	{"createWebhookEndpoint", "parameter_invalid", "url"},
	{"updateWebhookEndpoint", "parameter_invalid", "url"},
	// types of events
	{"putWebhookEndpoint", "parameter_invalid", "enabled_events"},
	{"createWebhookEndpoint", "parameter_invalid", "enabled_events"},
	{"updateWebhookEndpoint", "parameter_invalid", "enabled_events"},
	// likewise, or both type and types
	{"listEvents", "parameter_invalid", "type*"},
	{"putWebhookEndpoint", "too_many_endpoints", "id"},
	{"createWebhookEndpoint", "too_many_endpoints", ""},
	{"*", "idempotency_key_invalid", ""}, // 255 characters within quotes
}

func matches(pattern, s string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return s == pattern || open && strings.HasPrefix(s, prefix)
}

// tally is what was sent to an operation.
type tally struct{ valid, succeeded, invalid, either int }

// fuzzRun is one account, and what is known of it.
type fuzzRun struct {
	*shop
	apiKey, otherKey string
	pool             pool
	fresh            int
	// values are those of the examples: a damage is to be the only thing that is wrong
	sober   bool
	sent    []exchanged
	tallies map[string]*tally
}

// exchanged is a request that can be sent again, and its answer.
type exchanged struct {
	place   *place
	req     *http.Request
	content []byte
	code    int
	body    []byte
}

// Every operation of openapi.yaml gets requests that it allows, and requests that it forbids, both
// drawn from it: whatever comes, the fault is never ours, each answer is a described one, nothing
// that is forbidden is accepted, and nothing is refused for what is allowed.
func TestSpecFuzz(t *testing.T) {
	t.Parallel()
	wanted := fuzzRequests
	if race.Enabled { // each costs five times as much
		wanted /= 3
	}
	if more, err := strconv.Atoi(os.Getenv("PAIDONCE_FUZZ_REQUESTS")); err == nil {
		wanted = max(wanted, more)
	}
	s, all := newShopWith(t, online.LongCallLimit), places(t)
	tallies := map[string]*tally{}
	for _, p := range all {
		tallies[p.op.OperationID] = &tally{}
	}
	other := s.NewKey("other").Secret
	often := slices.Concat(all, slices.DeleteFunc(slices.Clone(all), func(p *place) bool { return p.op.RequestBody == nil }))
	missing := func() (all []string) {
		for id, c := range tallies {
			if c.valid == 0 || c.invalid == 0 || c.succeeded == 0 {
				all = append(all, fmt.Sprintf("%s: %d valid requests, of which %d succeeded, and %d invalid ones", id, c.valid, c.succeeded, c.invalid))
			}
		}
		return all
	}
	n, account := 0, 0
	for (n < wanted || n < 4*fuzzRequests && len(missing()) > 0) && !t.Failed() {
		rapid.Check(t, func(rt *rapid.T) {
			account++
			key := s.NewKey(fmt.Sprint("fuzz ", account))
			r := &fuzzRun{shop: s, apiKey: key.Secret, otherKey: other, pool: pool{}, tallies: tallies}
			// something to capture or to let go of: few charges that are drawn are authorised only
			r.pool.learn(s.As(key.Secret).Charge("a hold", `{"amount":2000,"currency":"usd","source":"tok_visa","capture":false}`).Body)
			intents := s.As(key.Secret)
			for name, more := range map[string]string{"held": `,"confirm":true,"capture_method":"manual"`, "open": ""} {
				r.pool.learn(intents.Post("/v1/payment_intents", name, `{"amount":2000,"currency":"usd","payment_method":"pm_card_visa","payment_method_types":["card"]`+more+`}`).Body)
			}
			// for the others to work with
			for _, id := range []string{"createPaymentIntent", "createCharge", "createCharge", "createCharge", "createRefund", "putWebhookEndpoint", "listEvents", "listDisputes"} {
				if id == "listDisputes" {
					r.dispute(t, key.AccountID)
				}
				r.one(rt, all[slices.IndexFunc(all, func(p *place) bool { return p.op.OperationID == id })])
			}
			rt.Repeat(map[string]func(*rapid.T){"send": func(rt *rapid.T) {
				if oneIn(rt, "again", 8) {
					r.again(rt)
				} else {
					r.one(rt, pick(rt, "operation", often))
				}
			}})
		})
		n = 0
		for _, c := range tallies {
			n += c.valid + c.invalid + c.either
		}
	}
	if all := missing(); !t.Failed() && len(all) > 0 {
		t.Error(strings.Join(all, "\n"))
	}
	for _, p := range all {
		t.Logf("%-28s %+v", p, *tallies[p.op.OperationID])
	}
}

// one draws and sends a request to an operation.
func (r *fuzzRun) one(t *rapid.T, p *place) {
	r.sober = uniform(t, "damaged", 5) > 2
	s := r.valid(t, p)
	var d damage
	if r.sober {
		d = pick(t, "damage", slices.DeleteFunc(slices.Clone(damages), func(d damage) bool { return !d.applies(s) }))
		if outside.applies(s) && oneIn(t, "outside", 2) {
			d = outside
		}
		d.do(t, r, s)
	}
	req, query, form := s.written(t, r.BaseURL)
	if s.op.RequestBody == nil && s.method == http.MethodGet && oneIn(t, "HEAD", 10) {
		req.Method = http.MethodHead
	}
	e := r.exchange(t, p, req)
	switch err := s.invalid(query, form); {
	case d.name != "" && lenient(p, d.name):
		r.tallies[p.op.OperationID].either++
	case d.name != "":
		r.judge(t, e, d.name, d.statuses)
	case err != nil:
		r.judge(t, e, err.Error(), bad)
	default:
		r.judge(t, e, "", nil)
	}
}

// invalid says what the schemas have against the request.
func (s *sketch) invalid(query, form []pair) error {
	for _, param := range s.params("path") {
		id := s.ids[param.Name]
		if err := param.Schema.Value.VisitJSON(id); err != nil {
			return fmt.Errorf("the path's %s: %w", param.Name, err)
		}
		if strings.ContainsRune(id, 0) || !utf8.ValidString(id) {
			return fmt.Errorf("the path's %s names nothing", param.Name)
		}
	}
	if !lenient(s.place, "query") {
		if err := held(query, s.querySchema()); err != nil {
			return fmt.Errorf("the query: %w", err)
		}
	}
	for _, param := range s.params("header") {
		lines := s.header[http.CanonicalHeaderKey(param.Name)]
		if param.Required && len(lines) == 0 {
			return fmt.Errorf("the header %s is missing", param.Name)
		}
		for _, line := range lines {
			if err := param.Schema.Value.VisitJSON(strings.Trim(line, " \t")); err != nil {
				return fmt.Errorf("the header %s: %w", param.Name, err)
			}
		}
	}
	if s.medium == mediaForm {
		return held(form, s.bodySchema(s.medium))
	}
	if s.medium != "" {
		schema := s.bodySchema(s.medium)
		return schema.VisitJSON(asTexts(plain(s.body), schema), asRequest...)
	}
	return nil
}

func held(list []pair, s *openapi3.Schema) error {
	doc, err := meaning(list, s)
	if err != nil {
		return err
	}
	for _, p := range list {
		if strings.ContainsRune(p.name+p.value, 0) {
			return fmt.Errorf("%q has the character NUL", p.name)
		}
	}
	return s.VisitJSON(doc, asRequest...)
}

// asRequest has the one format that matters, int64. Numbers are compared as floating-point ones, so
// none is drawn close to the last that fits.
var asRequest = []openapi3.SchemaValidationOption{
	openapi3.VisitAsRequest(), openapi3.WithIntegerFormatValidator("int64", openapi3.NewRangeFormatValidator[int64](math.MinInt64+1, math.MaxInt64-1)),
}

// exchange sends a request. The client holds the answer against openapi.yaml.
func (r *fuzzRun) exchange(t *rapid.T, p *place, req *http.Request) exchanged {
	e := exchanged{place: p, req: req}
	if req.Body != nil {
		e.content, _ = io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(e.content))
	}
	t.Logf("%s %.300s %.600q\n%.1000q", req.Method, req.URL, req.Header, e.content)
	res, err := r.HTTP.Do(req)
	if len(e.content) > api.DefaultMaxBody && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)) {
		t.Skip("the server had closed before all was sent, and its answer got lost")
	}
	if err != nil {
		t.Fatal(errors.Unwrap(err)) // without the URL
	}
	defer func() { _ = res.Body.Close() }()
	e.code = res.StatusCode
	if e.body, err = io.ReadAll(res.Body); err != nil {
		t.Fatalf("%v", err)
	}
	t.Logf("is answered %d %.1000s", e.code, e.body)
	if e.code >= http.StatusInternalServerError {
		t.Fatalf("our own fault: %d", e.code)
	}
	r.pool.learn(e.body)
	if lines := req.Header["Idempotency-Key"]; len(lines) == 1 && e.code < http.StatusMultipleChoices && p.keyed() && !strings.HasPrefix(lines[0], `"`) {
		r.pool["idempotency_keys"] = append(r.pool["idempotency_keys"], lines[0])
	}
	return e
}

// judge compares the answer with what openapi.yaml has against the request.
func (r *fuzzRun) judge(t *rapid.T, e exchanged, reason string, statuses []int) {
	c := r.tallies[e.place.op.OperationID]
	if reason != "" {
		c.invalid++
		// nothing has the id: that is told first
		gone := e.code == http.StatusNotFound && strings.Contains(e.place.path, "{")
		// what is signed is stored, whatever its shape
		kept := e.code == http.StatusOK && e.place.op.OperationID == "receiveStripeEvent" &&
			slices.Equal(statuses, bad) && reason != "another signature"
		if !gone && !kept && !slices.Contains(statuses, e.code) {
			t.Fatalf("answered %d, rather than one of %v, though openapi.yaml forbids it: %s", e.code, statuses, reason)
		}
		return
	}
	c.valid++
	r.sent = append(r.sent, e)
	switch e.code {
	case http.StatusOK, http.StatusCreated:
		c.succeeded++
	case http.StatusBadRequest:
		var refused struct {
			Error struct{ Code, Param, Message, Charge string }
		}
		if e.req.Method == http.MethodHead {
			return
		}
		if err := json.Unmarshal(e.body, &refused); err != nil {
			t.Fatal(err)
		}
		if op := e.place.op.OperationID; refused.Error.Charge != "" &&
			(op == "createCharge" || op == "createPaymentIntent") {
			return // the provider's word, or that of a charge with the same reference
		}
		if strings.HasSuffix(e.place.op.OperationID, "PaymentIntent") && providersWord(refused.Error.Code, refused.Error.Param) {
			return
		}
		for _, known := range refusals {
			if matches(known.operation, e.place.op.OperationID) && matches(known.code, refused.Error.Code) && matches(known.param, refused.Error.Param) {
				return
			}
		}
		t.Fatalf("refused (%s) though openapi.yaml allows it", refused.Error.Message)
	case http.StatusPaymentRequired, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity:
	default:
		t.Fatalf("answered %d though openapi.yaml allows it", e.code)
	}
}

// providersWord reports whether the provider has refused a payment intent: with a code of its own
// or none, or because there is no such means of payment or customer.
func providersWord(code, param string) bool {
	for ours := range problem.Codes() {
		if ours != problem.ProviderRefused && ours.String() == code {
			return code == "resource_missing" && (param == "payment_method" || param == "customer")
		}
	}
	return true
}

// again sends a request once more, byte by byte. What was done once for a key has the same answer.
func (r *fuzzRun) again(t *rapid.T) {
	if len(r.sent) == 0 {
		t.Skip("nothing was sent")
	}
	first := r.sent[uniform(t, "again", 1000)%len(r.sent)]
	if len(first.req.Header["Stripe-Signature"]) > 0 {
		t.Skip("a signature is for its time")
	}
	req := first.req.Clone(first.req.Context())
	req.Body = io.NopCloser(bytes.NewReader(first.content))
	e := r.exchange(t, first.place, req)
	r.judge(t, e, "", nil)
	final := takesKey(first.place) && len(first.req.Header["Idempotency-Key"]) > 0 && (first.code < http.StatusMultipleChoices || first.code == http.StatusPaymentRequired)
	if final && (e.code != first.code || !bytes.Equal(e.body, first.body)) {
		t.Fatalf("the same request has another answer than before: %d %s", first.code, first.body)
	}
}

func basic(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"))
}

// dispute lets the payer dispute a charge of an account, if it has one.
func (r *fuzzRun) dispute(t *testing.T, account string) {
	t.Helper()
	var ids []string
	err := r.World.Pool.QueryRow(t.Context(), `SELECT coalesce(array_agg(provider_id), '{}') FROM charges
		WHERE account_id = $1 AND captured AND provider_id IS NOT NULL`, account).Scan(&ids)
	if err != nil {
		t.Fatal(err)
	}
	for _, charge := range ids[:min(1, len(ids))] {
		id, err := r.World.Sim.OpenDispute(charge, stripesim.DisputeTerms{})
		if err != nil {
			t.Fatal(err)
		}
		r.World.Deliver(r.Inbox, "evt_"+id, "charge.dispute.created", id)
	}
	r.World.Process(r.Inbox)
}
