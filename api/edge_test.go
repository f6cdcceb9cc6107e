package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/accounts"
	"paidonce/api"
	"paidonce/api/apitest"
	"paidonce/charges"
	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/inbox"
	"paidonce/internal/dbtest"
	"paidonce/outbox"
	"paidonce/problem"
)

const (
	b0     = `{"amount":2000,"currency":"usd","source":"tok_visa"}`
	secret = "sk_A"
)

// edge is the HTTP edge alone, over a real socket: what lies behind it is made up by the test, so
// that every error can be seen.
type edge struct {
	*apitest.Client
	server *api.Server
	log    *lockedBuffer

	// create, get, list, ready answer for the domain.
	create func(context.Context, idemkeys.Request, charges.Params) (idemkeys.Result, error)
	get    func(id string) (charges.Charge, error)
	list   func(charges.Filter) (charges.Page, error)
	ready  error

	refundErr    error
	listDisputes func(charges.DisputeFilter) (charges.DisputePage, error)
	listRefunds  func(charges.RefundFilter) (charges.RefundPage, error)
	listIntents  func(charges.PaymentIntentFilter) (charges.PaymentIntentPage, error)

	mu         sync.Mutex
	keys       map[string]accounts.Identity
	accountErr error
	asked      int // how often the database was asked about an API key
	created    []idemkeys.Request
	last       any // the parameters of the last of them
}

// domain is the charges and the API keys behind an edge.
type domain struct{ edge *edge }

type lockedBuffer struct {
	t  *testing.T
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (d domain) Authenticate(_ context.Context, key string) (accounts.Identity, error) {
	e := d.edge
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	if len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		e.log.t.Errorf("the database was asked about %.20q", key)
	}
	if e.accountErr != nil {
		return accounts.Identity{}, e.accountErr
	}
	id, ok := e.keys[key]
	if !ok {
		return accounts.Identity{}, accounts.ErrUnknownKey
	}
	return id, nil
}

// Cached believes a revoked key, as the real cache does for some seconds.
func (d domain) Cached(_ context.Context, key string) (accounts.Identity, error) {
	e := d.edge
	e.mu.Lock()
	defer e.mu.Unlock()
	if id, ok := e.keys[key]; ok {
		return id, nil
	}
	if key == "sk_revoked" {
		return accounts.Identity{AccountID: "acct_A", APIKeyID: "key_old"}, nil
	}
	if e.accountErr != nil {
		return accounts.Identity{}, e.accountErr
	}
	return accounts.Identity{}, accounts.ErrUnknownKey
}

func (d domain) Create(ctx context.Context, r idemkeys.Request, p charges.Params) (idemkeys.Result, error) {
	e := d.edge
	e.mu.Lock()
	e.created, e.last = append(e.created, r), p
	e.mu.Unlock()
	return e.create(ctx, r, p)
}

func (d domain) Update(context.Context, idemkeys.Request, charges.UpdateParams) (idemkeys.Result, error) {
	return idemkeys.Result{}, problem.ResourceMissing.Of("id", "There is no such charge.")
}

func (d domain) Get(_ context.Context, account, id string, _ bool) (charges.Charge, error) {
	e := d.edge
	if account != "acct_A" {
		return charges.Charge{}, charges.ErrNotFound
	}
	return e.get(id)
}

func (d domain) List(_ context.Context, _ string, f charges.Filter) (charges.Page, error) {
	e := d.edge
	return e.list(f)
}

// creations is how often the domain was asked to make a charge.
func (e *edge) creations() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.created)
}

// newEdge serves an edge whose charges accept everything. For all else it has a database, which is
// empty.
func newEdge(t *testing.T, change ...func(*api.Config)) *edge {
	t.Helper()
	e := &edge{
		log:          &lockedBuffer{t: t},
		keys:         map[string]accounts.Identity{secret: {AccountID: "acct_A", APIKeyID: "key_A"}, "sk_B": {AccountID: "acct_B", APIKeyID: "key_B"}},
		get:          func(id string) (charges.Charge, error) { return charge(id), nil },
		listDisputes: func(charges.DisputeFilter) (charges.DisputePage, error) { return charges.DisputePage{}, nil },
		listRefunds:  func(charges.RefundFilter) (charges.RefundPage, error) { return charges.RefundPage{}, nil },
		listIntents: func(charges.PaymentIntentFilter) (charges.PaymentIntentPage, error) {
			return charges.PaymentIntentPage{}, nil
		},
		list: func(charges.Filter) (charges.Page, error) { return charges.Page{}, nil },
	}
	e.create = func(_ context.Context, r idemkeys.Request, _ charges.Params) (idemkeys.Result, error) {
		return made(r), nil
	}
	pool, err := db.Open(dbtest.New(t), 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	log := slog.New(slog.NewJSONHandler(e.log, nil))
	engine := idemkeys.NewEngine(pool, idemkeys.Config{}, log, nil)
	cfg := api.Config{
		Charges: domain{e}, Accounts: domain{e}, Keys: engine.Keys, Events: outbox.New(outbox.Config{Pool: pool, Runner: engine.Runner}),
		ProviderEvents: inbox.New(inbox.Config{Pool: pool, Secrets: []string{whsec}, Log: log}), Log: log,
		Ready: func(context.Context) error { return e.ready },
	}
	for _, f := range change {
		f(&cfg)
	}
	if e.server, err = api.New(cfg); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(nil)
	s.Config = e.server.HTTP()
	s.Start()
	t.Cleanup(s.Close)
	e.Client = apitest.NewClient(t, s.URL, secret)
	return e
}

const (
	chargeID  = "ch_01KB7Y8R5V6W3Q2P1N0M9K8J7H"
	otherReq  = "req_01KB7Y8R5QG2Z3X4C5V6B7N8M9"
	operation = "op_01KB7Y8R5TS8D9F0G1H2J3K4M5"
)

func charge(id string) charges.Charge {
	return charges.Charge{
		ID: id, Object: "charge", Amount: 2000, Created: 1764403200, Currency: "usd", Metadata: map[string]string{"a": "<&>"},
		Provider: charges.Provider{Name: "stripe"}, Status: "pending",
	}
}

// made is the result of a request that ran.
func made(r idemkeys.Request) idemkeys.Result {
	return idemkeys.Result{
		Answer: idemkeys.Answer{
			Code: 201, Header: map[string]string{"Content-Type": "application/json", "Location": "/v1/charges/" + chargeID}, Body: problem.Render(charge(chargeID)),
		},
		OperationID: operation, OriginalRequest: r.RequestID, Status: idemkeys.Completed,
	}
}

// replayed is the result of a request whose answer was stored.
func replayed(r idemkeys.Request) idemkeys.Result {
	res := made(r)
	res.Replayed, res.OriginalRequest = true, otherReq
	return res
}

func (e *edge) answers(res func(idemkeys.Request) idemkeys.Result, err error) {
	e.create = func(_ context.Context, r idemkeys.Request, _ charges.Params) (idemkeys.Result, error) {
		if err != nil {
			return idemkeys.Result{}, err
		}
		return res(r), nil
	}
}

func TestAFreshChargeIsAnsweredWithWhatWasMade(t *testing.T) {
	e := newEdge(t)
	a := e.Charge("K", b0)
	if a.Code != 201 || a.Replayed() || a.Header.Get("Location") != "/v1/charges/"+chargeID || a.Header.Get("Idempotency-Key") != "K" {
		t.Errorf("got %d %v", a.Code, a.Header)
	}
	if a.Header.Get("Original-Request") != "" || a.Header.Get("Stripe-Should-Retry") != "" || a.Header.Get("Preference-Applied") != "" {
		t.Errorf("got %v", a.Header)
	}
	if want := problem.Render(charge(chargeID)); !bytes.Equal(a.Body, want) {
		t.Errorf("got %q, want %q", a.Body, want)
	}
	if e.asked != 0 {
		t.Error("the database was asked about the API key although the claim does so")
	}
	r := e.created[0]
	if r.AccountID != "acct_A" || r.APIKeyID != "key_A" || r.Key != "K" || r.RequestID != a.Header.Get("Request-Id") || r.Wait != 0 {
		t.Errorf("got %+v", r)
	}
}

// The answer's own headers come back, those of the exchange are new.
func TestAReplayRepeatsTheAnswerAndNotTheExchange(t *testing.T) {
	e := newEdge(t)
	e.answers(replayed, nil)
	a := e.Charge("K", b0)
	if a.Code != 201 || !a.Replayed() || a.Header.Get("Original-Request") != otherReq || a.Header.Get("Location") != "/v1/charges/"+chargeID {
		t.Errorf("got %d %v", a.Code, a.Header)
	}
	if a.Header.Get("Request-Id") == otherReq || e.asked != 0 {
		t.Errorf("Request-Id %s, asked %d times", a.Header.Get("Request-Id"), e.asked)
	}
	e.answers(func(r idemkeys.Request) idemkeys.Result {
		res := replayed(r)
		res.Answer.Header["Set-Cookie"], res.Answer.Header["Date"], res.Answer.Header["Request-Id"] = "a=b", "yesterday", "req_x"
		return res
	}, nil)
	if a = e.Charge("K", b0); a.Header.Get("Set-Cookie") != "" || a.Header.Get("Date") == "yesterday" || a.Header.Get("Request-Id") == "req_x" {
		t.Errorf("headers that are not the result's came back: %v", a.Header)
	}
}

// A stored error says that trying again is of no use, unless it is proven that nothing happened.
func TestAStoredErrorIsFinal(t *testing.T) {
	e := newEdge(t)
	stored := func(code int, status idemkeys.Status, replay bool) func(idemkeys.Request) idemkeys.Result {
		return func(r idemkeys.Request) idemkeys.Result {
			res := made(r)
			res.Status, res.Replayed = status, replay
			p := problem.CardDeclined.Of("", "No.")
			res.Answer = idemkeys.Answer{Code: code, Header: map[string]string{"Content-Type": "application/json"}, Body: p.Body(r.RequestID)}
			return res
		}
	}
	for _, replay := range []bool{false, true} {
		e.answers(stored(402, idemkeys.Completed, replay), nil)
		if a := e.Charge("K", b0); a.Code != 402 || a.Header.Get("Stripe-Should-Retry") != "false" || a.Replayed() != replay || a.Header.Get("Location") != "" {
			t.Errorf("got %d %v", a.Code, a.Header)
		}
	}
	e.answers(stored(503, idemkeys.Failed, false), nil)
	if a := e.Charge("K", b0); a.Code != 503 || a.Header.Get("Stripe-Should-Retry") != "true" || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %v", a.Code, a.Header)
	}
}

func TestEveryErrorOfTheEngineHasItsAnswer(t *testing.T) {
	e := newEdge(t)
	secretCause := errors.New(`ERROR: relation "idempotency_keys" does not exist (SQLSTATE 42P01)`)
	for _, tc := range []struct {
		err          error
		status       int
		code, kind   string
		advice       string
		retry, after string
		charge       string
	}{
		{idemkeys.ErrReused, 422, "idempotency_key_reused", "idempotency_error", "fix_and_use_new_key", "false", "", ""},
		{&idemkeys.InUse{RetryAfter: 1200 * time.Millisecond}, 409, "idempotency_key_in_use", "idempotency_error", "retry_same_key", "true", "2", ""},
		{&idemkeys.InUse{}, 409, "idempotency_key_in_use", "idempotency_error", "retry_same_key", "true", "1", ""},
		{&idemkeys.InUse{RetryAfter: time.Millisecond}, 409, "idempotency_key_in_use", "idempotency_error", "retry_same_key", "true", "1", ""},
		{&idemkeys.Unknown{ResourceID: chargeID, RetryAfter: 5 * time.Second, Cause: secretCause}, 503, "outcome_unknown", "api_error", "retry_same_key", "true", "5", chargeID},
		{&idemkeys.Unknown{ResourceID: chargeID, NotExecuted: true}, 503, "provider_unavailable", "api_error", "retry_same_key", "true", "2", chargeID},
		{&idemkeys.Parked{OperationID: operation, ResourceID: chargeID}, 500, "operation_parked", "api_error", "stop", "false", "", chargeID},
		{errors.Join(idemkeys.ErrUnavailable, secretCause), 503, "unavailable", "api_error", "retry_same_key", "true", "2", ""},
		{idemkeys.ErrForbidden, 401, "api_key_invalid", "authentication_error", "stop", "false", "", ""},
		{secretCause, 500, "internal_error", "api_error", "retry_same_key", "true", "", ""},
	} {
		e.answers(nil, tc.err)
		a := e.Charge("K", b0)
		wants(t, a, tc.status, tc.code, "")
		p := a.Error()
		if p.Type != tc.kind || p.Advice != tc.advice || p.Charge != tc.charge {
			t.Errorf("%v: got %+v", tc.err, p)
		}
		if a.Header.Get("Stripe-Should-Retry") != tc.retry || a.Header.Get("Retry-After") != tc.after || a.Replayed() || a.Header.Get("Idempotency-Key") != "K" {
			t.Errorf("%v: got %v", tc.err, a.Header)
		}
		if bytes.Contains(a.Body, []byte("SQLSTATE")) || bytes.Contains(a.Body, []byte("idempotency_keys")) {
			t.Errorf("the answer tells of the inside: %s", a.Body)
		}
	}
}

// What is up to whoever operates us is told apart, and the provider's words are not repeated.
func TestWhyTheProviderDidNotAct(t *testing.T) {
	e := newEdge(t)
	for obstacle, says := range map[idemkeys.Obstacle]string{
		"": "could not be reached", idemkeys.ObstacleCredentials: "refuses the credentials", idemkeys.ObstacleRateLimit: "takes no more requests",
	} {
		for _, known := range []bool{true, false} {
			e.answers(nil, &idemkeys.Unknown{NotExecuted: known, Obstacle: obstacle, Cause: errors.New("Invalid API Key provided: sk_live_1")})
			a := e.Charge("K", b0)
			p := a.Error()
			if strings.Contains(p.Message, says) != known || (p.Code == "provider_unavailable") != known || bytes.Contains(a.Body, []byte("sk_live_1")) || a.Code != 503 {
				t.Errorf("%q, not executed: %t: got %d %s", obstacle, known, a.Code, a.Body)
			}
		}
	}
}

// The domain's own statements check the API key (recovery's TestARevokedAPIKeyLearnsNothing); what
// they say of it is a 401 that tells nothing else.
func TestARevokedAPIKeyLearnsNothingOfOthersRequests(t *testing.T) {
	e := newEdge(t)
	e.answers(nil, idemkeys.ErrForbidden)
	a := e.Charge("K", b0)
	wants(t, a, 401, "api_key_invalid", "")
	if bytes.Contains(a.Body, []byte(chargeID)) || a.Replayed() || a.Header.Get("Location") != "" {
		t.Errorf("got %s %v", a.Body, a.Header)
	}
}

func TestWhoHangsUpDoesNotCancelTheWork(t *testing.T) {
	e := newEdge(t)
	begun, finished := make(chan struct{}), make(chan error, 1)
	e.create = func(ctx context.Context, r idemkeys.Request, _ charges.Params) (idemkeys.Result, error) {
		close(begun)
		select {
		case <-ctx.Done():
			finished <- ctx.Err()
		case <-time.After(300 * time.Millisecond): // long enough for a cancellation to arrive
			finished <- nil
		}
		return made(r), nil
	}
	ctx, hangUp := context.WithCancel(t.Context())
	req := e.Request("POST", "/v1/charges", b0, "Idempotency-Key", "K", "Content-Type", "application/json", "Authorization", "Bearer "+secret).WithContext(ctx)
	go func() {
		<-begun
		hangUp()
	}()
	if _, err := e.HTTP.Do(req); err == nil {
		t.Error("the client did not hang up")
	}
	if err := <-finished; err != nil {
		t.Errorf("the work was cancelled: %v", err)
	}
}

// jsonText quotes a text.
func jsonText(s string) (string, error) {
	b, err := json.Marshal(s)
	return string(b), err
}
