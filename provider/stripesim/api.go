package stripesim

import (
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// call is one request to Stripe's part of the simulator.
type call struct {
	method, path string
	parts        []string // the path after /v1/
	params       params
	key          string // Idempotency-Key of a POST
	live         bool   // asked with a live key; objects of the two modes never meet
	public       bool   // asked with a publishable key
	request      string // Request-Id
	origin       string // where it was asked
	fault        *Fault // what a rule wants to go wrong; nil: nothing
	started      time.Time
}

// answer is what a call gets.
type answer struct {
	status   int
	object   renderer // rendered into body once the lock is gone
	body     []byte
	replayed bool
	original string   // Request-Id of the first request under the key
	events   []*event // to be told to webhooks
}

func (a *apiError) answer() answer { return answer{status: a.Status, body: rendered(a)} }

func ok(r renderer) answer { return answer{status: http.StatusOK, object: r} }

// work makes a request's record while the state is locked. Without a record the error alone is
// remembered.
type work func(st *state) (*record, *apiError)

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	c := &call{method: r.Method, path: r.URL.Path, request: newID("req_"), origin: origin(r), started: time.Now()}
	entry := &logEntry{Time: s.now(), Method: c.method, Path: c.path, RequestID: c.request}
	defer func() {
		entry.Millis = float64(time.Since(c.started).Microseconds()) / 1000
		s.log.add(entry)
	}()
	s.counts.seen(c.method, c.path)
	secret, bad := s.read(c, r)
	entry.Key, entry.params = c.key, c.params
	if bad == nil && c.key != "" {
		s.counts.key(c.key)
	}
	w.Header().Set("Request-Id", c.request)
	w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	if v := r.Header.Get("Stripe-Version"); v != "" {
		w.Header().Set("Stripe-Version", v)
	}
	if bad != nil {
		entry.Status = bad.Status
		s.counts.refused.Add(1)
		writeAnswer(w, c, bad.answer())
		return
	}
	if bad := s.rights.check(c, secret); bad != nil {
		entry.Status = bad.Status
		s.counts.refused.Add(1)
		writeAnswer(w, c, bad.answer())
		return
	}
	c.live, c.public = strings.Contains(secret, "_live_"), publishable(secret)
	c.fault = s.faults.match(c)
	if c.fault != nil {
		entry.Fault = c.fault.Type
		if s.failBefore(w, r, c, entry) {
			return
		}
	}
	a := s.run(c)
	entry.Replayed = a.replayed
	if a.status == 0 { // the ledger is gone: nothing may be said about this request
		s.cut(w, r, WireReset)
		return
	}
	s.hooks.tell(a.events)
	if s.failAfter(w, r, c, entry, &a) {
		return
	}
	entry.Status = a.status
	writeAnswer(w, c, a)
}

// read takes the request apart. What it refuses never touches a key, as with Stripe.
func (s *Server) read(c *call, r *http.Request) (secret string, bad *apiError) {
	if c.method == http.MethodPost {
		c.key = r.Header.Get("Idempotency-Key")
	}
	rest, isV1 := strings.CutPrefix(c.path, "/v1/")
	if isV1 {
		c.parts = strings.Split(strings.TrimSuffix(rest, "/"), "/")
	}
	secret = keyOf(r)
	inForm := secret == "" && c.forBrowsers() // as Stripe.js sends it
	if bad := c.checkKey(secret); bad != nil && !inForm {
		return "", bad
	}
	if !isV1 {
		return "", unrecognized(c)
	}
	form := r.URL.RawQuery
	if c.method == http.MethodPost {
		kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
		if err != nil {
			return "", invalid("", "", "The request's body could not be read.")
		}
		if len(body) > maxBody {
			e := invalid("", "", "The request is too large.")
			e.Status = http.StatusRequestEntityTooLarge
			return "", e
		}
		if len(body) > 0 && !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
			return "", invalid("", "", "Invalid request (check that your POST content type is application/x-www-form-urlencoded).")
		}
		if form != "" {
			form += "&"
		}
		form += string(body)
	}
	if c.params, bad = parseParams(form); bad != nil {
		return "", bad
	}
	if inForm {
		secret = c.params.get("key")
	}
	if bad := c.checkKey(secret); bad != nil {
		return "", bad
	}
	if len(c.key) > 255 {
		return "", invalid("", "", "Idempotency keys can have at most 255 characters.")
	}
	return secret, nil
}

func keyOf(r *http.Request) string {
	secret, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		secret, _, _ = r.BasicAuth() // as Stripe's curl examples do
	}
	return secret
}

func (c *call) checkKey(secret string) *apiError {
	e := &apiError{Status: http.StatusUnauthorized, Type: typeInvalid}
	switch {
	case secret == "":
		e.Message = "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth."
	case publishable(secret) && c.forBrowsers():
		return nil
	case publishable(secret):
		e.Code, e.Message = "secret_key_required", "This API call cannot be made with a publishable API key."
	case !strings.HasPrefix(secret, "sk_") && !strings.HasPrefix(secret, "rk_"):
		e.Message = "Invalid API Key provided: " + masked(secret)
	default:
		return nil
	}
	return e
}

// masked shows a key as Stripe does: its beginning and its last four characters.
func masked(secret string) string {
	if len(secret) < 12 {
		return strings.Repeat("*", len(secret))
	}
	return secret[:4] + strings.Repeat("*", len(secret)-8) + secret[len(secret)-4:]
}

func unrecognized(c *call) *apiError {
	e := invalid("", "", "Unrecognized request URL (%s: %s). The simulator may not have what Stripe has.", c.method, c.path)
	e.Status = http.StatusNotFound
	return e
}

func (s *Server) run(c *call) answer {
	switch c.method {
	case http.MethodPost:
		return s.post(c)
	case http.MethodGet:
		// First look, then wait: whatever was seen is on disk when it is told.
		a := s.get(c)
		if err := s.settled(); err != nil {
			return answer{}
		}
		if a.object != nil {
			a.body = rendered(a.object)
		}
		return a
	}
	e := unrecognized(c)
	return e.answer()
}

// prepare validates the parameters of a POST. An error here comes before anything runs and isn't
// remembered by the key.
func (s *Server) prepare(c *call) (work, *apiError) {
	p := c.parts
	switch {
	case len(p) == 1 && p[0] == "charges":
		return s.createCharge(c)
	case len(p) == 3 && p[0] == "charges" && p[2] == "capture":
		return s.captureCharge(c, p[1])
	case len(p) == 1 && p[0] == "payment_intents":
		return s.createIntent(c)
	case len(p) == 2 && p[0] == "payment_intents":
		return s.updateIntent(c, p[1])
	case len(p) == 3 && p[0] == "payment_intents" && p[2] == "confirm":
		return s.confirmIntent(c, p[1])
	case len(p) == 3 && p[0] == "payment_intents" && p[2] == "capture":
		return s.captureIntent(c, p[1])
	case len(p) == 3 && p[0] == "payment_intents" && p[2] == "cancel":
		return s.cancelIntent(c, p[1])
	case len(p) == 1 && p[0] == "refunds":
		return s.createRefund(c)
	case len(p) == 1 && p[0] == "customers":
		return s.createCustomer(c)
	}
	return nil, unrecognized(c)
}

func (s *Server) get(c *call) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, p := s.state, c.parts
	switch {
	case len(p) == 1 && p[0] == "charges":
		return s.listCharges(c)
	case len(p) == 2 && p[0] == "charges" && p[1] == "search":
		return s.searchCharges(c)
	case len(p) == 2 && p[0] == "charges":
		if e := st.charges[p[1]]; e != nil && e.cur.Live == c.live {
			return ok(e.cur)
		}
		return noSuch("charge", p[1], "id").answer()
	case len(p) == 3 && p[0] == "charges" && p[2] == "refunds":
		return s.listRefunds(c, p[1])
	case len(p) == 1 && p[0] == "refunds":
		return s.listRefunds(c, c.params.get("charge"))
	case len(p) == 2 && p[0] == "refunds":
		if e := st.refunds[p[1]]; e != nil && e.cur.Live == c.live {
			return ok(e.cur)
		}
		return noSuch("refund", p[1], "id").answer()
	case len(p) == 1 && p[0] == "payment_intents":
		return s.listIntents(c)
	case len(p) == 2 && p[0] == "payment_intents":
		return st.showIntent(c, p[1])
	case len(p) == 1 && p[0] == "disputes":
		return s.listDisputes(c)
	case len(p) == 2 && p[0] == "disputes":
		if e := st.disputes[p[1]]; e != nil && e.cur.Live == c.live {
			return ok(e.cur)
		}
		return noSuch("dispute", p[1], "id").answer()
	case len(p) == 2 && p[0] == "radar" && p[1] == "early_fraud_warnings":
		return s.listWarnings(c)
	case len(p) == 3 && p[0] == "radar" && p[1] == "early_fraud_warnings":
		if e := st.warnings[p[2]]; e != nil && e.cur.Live == c.live {
			return ok(e.cur)
		}
		return noSuch("issuer_fraud_record", p[2], "early_fraud_warning").answer()
	case len(p) == 1 && p[0] == "customers":
		return s.listCustomers(c)
	case len(p) == 2 && p[0] == "customers":
		if cust := st.customer(p[1], c.live); cust != nil {
			return ok(cust)
		}
		return noSuch("customer", p[1], "id").answer()
	case len(p) == 1 && p[0] == "account":
		return ok(account{s.cfg.Account})
	case len(p) == 1 && p[0] == "balance":
		return ok(balance{maps.Clone(st.balance), c.live})
	case len(p) == 1 && p[0] == "events":
		return s.listEvents(c)
	case len(p) == 2 && p[0] == "events":
		if v := st.events[p[1]]; v != nil && v.live == c.live {
			return ok(v)
		}
		return noSuch("event", p[1], "id").answer()
	}
	return unrecognized(c).answer()
}

func writeAnswer(w http.ResponseWriter, c *call, a answer) {
	setHeaders(w.Header(), c, a)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a client that is gone doesn't change what happened
}

func setHeaders(h http.Header, c *call, a answer) {
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, no-store")
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	if c.key == "" {
		return
	}
	h.Set("Idempotency-Key", c.key)
	if a.original != "" {
		h.Set("Original-Request", a.original)
	}
	if a.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
}
