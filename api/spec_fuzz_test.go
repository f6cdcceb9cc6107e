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
)

// fuzzRequests is how many requests are sent at least; PAIDONCE_FUZZ_REQUESTS asks for more.
const fuzzRequests = 5000

// leniencies are what the server takes although openapi.yaml forbids it in general, on purpose.
var leniencies = []struct {
	where  func(*place) bool
	damage []string // names of damages; "query" is what the schemas say of a query
}{
	// The query of a request that moves money is not read: it only belongs to what the key stands for.
	{(*place).keyed, []string{"query", "not a query", "given twice in the query"}},
	// Whoever asks about health or delivers the provider's news may add to the URL.
	{func(p *place) bool { return !p.secured() }, []string{"query", "not a query", "given twice in the query"}},
	// The provider's bytes are signed and kept as they come; of what they say only the described members are read.
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

// refusals are the reasons for which a request is refused (400) that the schemas allow. Each is said in openapi.yaml in words, as OpenAPI 3.0 has no
// other way to say it. code may end with *.
var refusals = []struct{ operation, code, param string }{
	{"createCharge", "invalid_currency", "currency"},              // not every three letters are a currency
	{"createCharge", "parameter_missing", "source"},               // exactly one of source and customer
	{"createCharge", "parameter_invalid", "customer"},             // exactly one of source and customer
	{"createCharge", "email_invalid", "receipt_email"},            // an address
	{"captureCharge", "charge_*", "id"},                           // how the charge stands
	{"captureCharge", "amount_too_large", "amount"},               // more than is authorised
	{"createRefund", "charge_*", "charge"},                        // how the charge stands
	{"createRefund", "amount_too_large", "amount"},                // more than is left
	{"*", "parameter_invalid", "metadata*"},                       // the names of metadata
	{"*", "resource_missing", "starting_after"},                   // a cursor that names nothing
	{"*", "resource_missing", "ending_before"},                    // a cursor that names nothing
	{"*", "parameter_invalid", "ending_before"},                   // not both cursors
	{"putWebhookEndpoint", "parameter_invalid", "url"},            // an address on the public Internet
	{"putWebhookEndpoint", "parameter_invalid", "enabled_events"}, // types of events
	{"putWebhookEndpoint", "too_many_endpoints", "id"},
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
	sober            bool // values are those of the examples: a damage is to be the only thing that is wrong
	sent             []exchanged
	tallies          map[string]*tally
}

// exchanged is a request that can be sent again, and its answer.
type exchanged struct {
	place   *place
	req     *http.Request
	content []byte
	code    int
	body    []byte
}

// Every operation of openapi.yaml gets requests that it allows, and requests that it forbids, both drawn from it: whatever comes, there is no fault of
// ours, each answer is a described one, nothing that is forbidden is accepted, and nothing is refused for what is allowed.
func TestSpecFuzz(t *testing.T) {
	t.Parallel()
	wanted := fuzzRequests
	if more, err := strconv.Atoi(os.Getenv("PAIDONCE_FUZZ_REQUESTS")); err == nil {
		wanted = max(wanted, more)
	}
	s, all := newShopWith(t, patient), places(t)
	tallies := map[string]*tally{}
	for _, p := range all {
		tallies[p.op.OperationID] = &tally{}
	}
	other := s.apiKey(t, "other").Secret
	often := slices.Concat(all, slices.DeleteFunc(slices.Clone(all), func(p *place) bool { return p.op.RequestBody == nil }))
	n, account := 0, 0
	for n < wanted && !t.Failed() {
		rapid.Check(t, func(rt *rapid.T) {
			account++
			r := &fuzzRun{shop: s, apiKey: s.apiKey(t, fmt.Sprint("fuzz ", account)).Secret, otherKey: other, pool: pool{}, tallies: tallies}
			for _, id := range []string{"createCharge", "createCharge", "createCharge", "createRefund", "putWebhookEndpoint", "listEvents"} { // for the others to work with
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
	for id, c := range tallies {
		if !t.Failed() && (c.valid == 0 || c.invalid == 0 || c.succeeded == 0) {
			t.Errorf("%s: %d valid requests, of which %d succeeded, and %d invalid ones", id, c.valid, c.succeeded, c.invalid)
		}
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

// invalid tells what the schemas have against the request.
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
		return s.bodySchema(s.medium).VisitJSON(plain(s.body), asRequest...)
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

// asRequest has the one format that matters, int64. Numbers are compared as floating-point ones, so none is drawn close to the last that fits.
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
		t.Fatalf("a fault of ours: %d", e.code)
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
		gone := e.code == http.StatusNotFound && strings.Contains(e.place.path, "{") // nothing has the id: that is told first
		if !gone && !slices.Contains(statuses, e.code) {
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
		var problem struct {
			Error struct{ Code, Param, Message, Charge string }
		}
		if e.req.Method == http.MethodHead {
			return
		}
		if err := json.Unmarshal(e.body, &problem); err != nil {
			t.Fatal(err)
		}
		if problem.Error.Charge != "" && e.place.op.OperationID == "createCharge" {
			return // the provider's word: nothing else names a charge here
		}
		for _, known := range refusals {
			if matches(known.operation, e.place.op.OperationID) && matches(known.code, problem.Error.Code) && matches(known.param, problem.Error.Param) {
				return
			}
		}
		t.Fatalf("refused (%s) though openapi.yaml allows it", problem.Error.Message)
	case http.StatusPaymentRequired, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity:
	default:
		t.Fatalf("answered %d though openapi.yaml allows it", e.code)
	}
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
