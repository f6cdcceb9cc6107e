package stripe_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"paidonce/provider"
	"paidonce/provider/stripe"
)

// rawServer answers every request with what reply does to the connection; it says how many
// requests came.
func rawServer(t *testing.T, reply func(n int64, conn net.Conn)) (url string, requests *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requests = new(atomic.Int64)
	var open sync.Map
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(conn, true)
			go func() {
				in := bufio.NewReader(conn)
				for {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_ = req.ParseForm() // reads the body
					reply(requests.Add(1), conn)
				}
			}()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		open.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
	})
	return "http://" + l.Addr().String(), requests
}

func write(conn net.Conn, s string) { _, _ = conn.Write([]byte(s)) }

func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// Everything that happens to a connection after it stands leaves the outcome unknown.
func TestBrokenConnections(t *testing.T) {
	for name, reply := range map[string]func(int64, net.Conn){
		"closed":                 func(_ int64, c net.Conn) { _ = c.Close() },
		"reset":                  func(_ int64, c net.Conn) { reset(c) },
		"silent":                 func(int64, net.Conn) {},
		"not HTTP":               func(_ int64, c net.Conn) { write(c, "220 mail ready\r\n"); _ = c.Close() },
		"half a header":          func(_ int64, c net.Conn) { write(c, "HTTP/1.1 200 OK\r\nContent-"); _ = c.Close() },
		"half a body":            func(_ int64, c net.Conn) { write(c, ok(goodCharge())[:200]); _ = c.Close() },
		"reset in the body":      func(_ int64, c net.Conn) { write(c, ok(goodCharge())[:200]); reset(c) },
		"silent in the body":     func(_ int64, c net.Conn) { write(c, ok(goodCharge())[:200]) },
		"no length, half a body": func(_ int64, c net.Conn) { write(c, "HTTP/1.1 200 OK\r\n\r\n"+goodCharge()[:100]); _ = c.Close() },
		"chunked, without an end": func(_ int64, c net.Conn) {
			write(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"")
			_ = c.Close()
		},
		"half a decline": func(_ int64, c net.Conn) {
			write(c, "HTTP/1.1 402 Payment Required\r\nContent-Length: 500\r\n\r\n"+stripeError("card_error", "")[:30])
			_ = c.Close()
		},
		"endless headers": func(_ int64, c net.Conn) {
			write(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<18)+"\r\n\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := rawServer(t, reply)
			_, err := connect(t, url).Charge(context.Background(), &ordinary)
			var e *provider.Error
			if !errors.As(err, &e) || e.Kind != provider.Unknown {
				t.Fatalf("got %v, want unknown", err)
			}
		})
	}
}

// What ends before a connection stands can't have reached anybody.
func TestNeverReached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + l.Addr().String()
	_ = l.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, never shakes hands
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer untrusted.Close()
	for name, base := range map[string]string{
		"refused":               refused,
		"no such host":          "http://stripe.invalid",
		"certificate":           untrusted.URL,
		"TLS with a plain port": strings.Replace(plain.URL, "http:", "https:", 1),
		"handshake never ends":  "https://" + silent.Addr().String(),
	} {
		_, err := connect(t, base).Charge(context.Background(), &ordinary)
		var e *provider.Error
		if !errors.As(err, &e) || e.Kind != provider.NotExecuted || e.HTTPStatus != 0 {
			t.Errorf("%s: got %v, want not executed", name, err)
		}
	}
}

// One call is one attempt, whatever the SDK would like to try again.
func TestSDKNeverRetries(t *testing.T) {
	for _, status := range []int{409, 429, 500, 503} {
		var n atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n.Add(1)
			w.Header().Set("Stripe-Should-Retry", "true")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(stripeError("api_error", `,"code":"lock_timeout"`)))
		}))
		if _, err := connect(t, s.URL).Charge(context.Background(), &ordinary); err == nil || n.Load() != 1 {
			t.Errorf("%d: %v after %d attempts, want an error after 1", status, err, n.Load())
		}
		s.Close()
	}
	url, _ := rawServer(t, func(int64, net.Conn) {})
	start := time.Now()
	if _, err := connect(t, url).Charge(context.Background(), &ordinary); err == nil || time.Since(start) > 3*time.Second {
		t.Errorf("%v after %s: the timeout of 1 s is for everything", err, time.Since(start))
	}
}

// Every POST carries our key and tags, twice the same bytes, and nothing that stripe-go made up.
func TestRequestOnTheWire(t *testing.T) {
	type seen struct {
		key, path, body string
		header          http.Header
	}
	var mu sync.Mutex
	var all []seen
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != r.ContentLength {
			t.Errorf("read %d bytes of %d: %v", len(body), r.ContentLength, err)
		}
		mu.Lock()
		all = append(all, seen{strings.Join(r.Header.Values("Idempotency-Key"), "|"), r.URL.Path, string(body), r.Header})
		mu.Unlock()
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer s.Close()
	p := connect(t, s.URL+"///")
	ctx, tags := context.Background(), provider.Tags{Operation: "op_1", Installation: "in_1"}
	r := ordinary
	r.Metadata = map[string]string{"b": "2 ü&=", "a": "1", "c": "3", "paidonce_operation": "forged"}
	r.Description, r.ReceiptEmail, r.StatementDescriptorSuffix = "A book & more", "a+b@example.com", "BOOK"
	r.StatementDescriptor = "BOOKS"
	r.Shipping = &provider.Shipping{Name: "Jenny", Address: provider.Address{City: "London", PostalCode: "NW6"}}
	for range 20 {
		_, _ = p.Charge(ctx, &r)
	}
	_, _ = p.Capture(ctx, provider.CaptureRequest{IdempotencyKey: "po_2", Tags: tags, ChargeID: "ch_1", Amount: 5})
	_, _ = p.Refund(ctx, provider.RefundRequest{IdempotencyKey: "po_3", Tags: tags, ChargeID: "ch_1", Amount: 5, Reason: "duplicate"})
	for i, one := range all[:20] {
		if one.key != "po_1" || one.body != all[0].body {
			t.Fatalf("attempt %d differs: %+v", i, one)
		}
	}
	form, err := url.ParseQuery(all[0].body)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"amount": "2000", "currency": "usd", "source": "tok_visa", "capture": "true", "description": "A book & more",
		"receipt_email": "a+b@example.com", "statement_descriptor_suffix": "BOOK", "metadata[a]": "1",
		"statement_descriptor": "BOOKS", "shipping[name]": "Jenny", "shipping[address][city]": "London", "shipping[address][postal_code]": "NW6", "metadata[b]": "2 ü&=",
		"metadata[paidonce_operation]": "op_1", "metadata[paidonce_installation]": "in_1",
	} {
		if got := form[name]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if form.Has("customer") || all[0].path != "/v1/charges" {
		t.Errorf("%s with %v", all[0].path, form)
	}
	if all[20].key != "po_2" || all[20].path != "/v1/charges/ch_1/capture" || all[20].body != "amount=5" {
		t.Errorf("capture: %+v", all[20])
	}
	if all[21].key != "po_3" || !strings.Contains(all[21].body, "metadata[paidonce_operation]=op_1") {
		t.Errorf("refund: %+v", all[21])
	}
	if h := all[0].header; h.Get("X-Stripe-Client-Telemetry") != "" || h.Get("Accept-Encoding") != "" {
		t.Errorf("headers %v", h)
	}
}

// A redirect is not followed: not even a good answer at its end says what became of the first
// request.
func TestRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var n atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if n.Add(1) == 1 {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
				return
			}
			_, _ = w.Write([]byte(goodCharge()))
		}))
		out, err := connect(t, s.URL).Charge(context.Background(), &ordinary)
		if got := verdict(out, err); got != "unknown" || n.Load() != 1 {
			t.Errorf("%d: %s after %d requests", status, got, n.Load())
		}
		s.Close()
	}
}

// Only a complete walk through all pages proves that something isn't there.
func TestLookupIsInconclusive(t *testing.T) {
	page := func(more string, ids ...string) string {
		var items []string
		for _, id := range ids {
			items = append(items, goodCharge("ch_1", id, "op_1", "op_other"))
		}
		return `{"object":"list","url":"/v1/charges","has_more":` + more + `,"data":[` + strings.Join(items, ",") + `]}`
	}
	for name, c := range map[string]struct {
		status int
		pages  []string // the last one is repeated
		fine   bool
	}{
		"nothing":                    {200, []string{page("false")}, true},
		"two pages":                  {200, []string{page("true", "ch_2"), page("false", "ch_1")}, true},
		"more, but empty":            {200, []string{page("true")}, false},
		"the same page again":        {200, []string{page("true", "ch_2")}, false},
		"too many pages":             {200, []string{page("true", "ch_2"), page("true", "ch_3"), page("true", "ch_4"), page("true", "ch_5"), page("true", "ch_6")}, false},
		"empty object":               {200, []string{`{}`}, false},
		"null":                       {200, []string{`null`}, false},
		"no data":                    {200, []string{`{"object":"list","has_more":false}`}, false},
		"no has_more":                {200, []string{`{"object":"list","data":[]}`}, false},
		"has_more in words":          {200, []string{`{"object":"list","has_more":"false","data":[]}`}, false},
		"no object":                  {200, []string{`{"has_more":false,"data":[]}`}, true},
		"data is an object":          {200, []string{`{"object":"list","has_more":false,"data":{}}`}, false},
		"data is null":               {200, []string{`{"object":"list","has_more":false,"data":null}`}, false},
		"null in the list":           {200, []string{`{"object":"list","has_more":false,"data":[null]}`}, false},
		"number in the list":         {200, []string{`{"object":"list","has_more":false,"data":[7]}`}, false},
		"another object":             {200, []string{`{"object":"search_result","has_more":false,"data":[]}`}, false},
		"something else in the list": {200, []string{`{"object":"list","has_more":false,"data":[{}]}`}, false},
		"second page fails":          {200, []string{page("true", "ch_2"), "<html>"}, false},
		"refused":                    {400, []string{stripeError("invalid_request_error", "")}, false},
		"missing":                    {404, []string{stripeError("invalid_request_error", `,"code":"resource_missing"`)}, false},
		"server error":               {500, []string{""}, false},
		"redirect":                   {302, []string{page("false")}, false},
	} {
		var n atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.pages[min(int(n.Add(1)), len(c.pages))-1]))
		}))
		p, err := stripe.New(stripe.Config{APIKey: testKey, BaseURL: s.URL, MaxPages: 4})
		if err != nil {
			t.Fatal(err)
		}
		created := time.Unix(1700000000, 0) // of all that is in the list
		hits, err := p.FindCharge(context.Background(), provider.Lookup{Tags: ordinary.Tags, From: created, To: created})
		if (err == nil) != c.fine || len(hits) != 0 {
			t.Errorf("%s: got %v, %v, want 0", name, hits, err)
		}
		if c.fine && int(n.Load()) != len(c.pages) {
			t.Errorf("%s: %d pages were read", name, n.Load())
		}
		s.Close()
	}
}

func TestGetCharge(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		fine   bool
	}{
		"there":         {200, goodCharge(), true},
		"missing":       {404, stripeError("invalid_request_error", `,"code":"resource_missing"`), true},
		"other mode":    {404, `{"error":{"type":"invalid_request_error","code":"resource_missing","message":"No such charge: 'ch_1'; a similar object exists in live mode, but a test mode key was used to make this request."}}`, false},
		"gateway":       {404, "<html>", false},
		"other charge":  {200, goodCharge("ch_1", "ch_2"), false},
		"null":          {200, "null", false},
		"unauthorised":  {401, "", false},
		"not a missing": {404, stripeError("invalid_request_error", ""), false},
	} {
		got, err := answering(t, c.status, nil, c.body).GetCharge(context.Background(), "ch_1")
		if (err == nil) != c.fine || (got != nil) != (c.fine && c.status == 200) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// The refunds that can be in any of Stripe's states, and one that fails after the fact.
func TestRefundStates(t *testing.T) {
	body := `{"id":"re_1","object":"refund","charge":"ch_1","amount":5,"currency":"usd","status":"%s","created":1700000000,` +
		`"metadata":{"paidonce_operation":"op_1","paidonce_installation":"in_1"}}`
	r := provider.RefundRequest{IdempotencyKey: "po_3", Tags: ordinary.Tags, ChargeID: "ch_1", Amount: 5}
	for _, status := range []provider.Status{provider.Pending, provider.Succeeded, provider.Failed, provider.Canceled, provider.RequiresAction} {
		out, err := answering(t, 200, nil, fmt.Sprintf(body, status)).Refund(context.Background(), r)
		if err != nil || out.Refund == nil || out.Refund.Status != status {
			t.Errorf("%s: %+v, %v", status, out, err)
		}
	}
	for change, kind := range map[string]provider.Kind{`"amount":6`: provider.Conflict, `"amount":"5"`: provider.Unknown, `"amount":5.5`: provider.Unknown} {
		b := strings.Replace(fmt.Sprintf(body, "succeeded"), `"amount":5`, change, 1)
		_, err := answering(t, 200, nil, b).Refund(context.Background(), r)
		var e *provider.Error
		if !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("%s: %v", change, err)
		}
	}
	sim, p := newSim(t)
	out, err := p.Charge(context.Background(), &ordinary)
	if err != nil {
		t.Fatal(err)
	}
	r.ChargeID = out.Charge.ID
	back, err := p.Refund(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.FailRefund(back.Refund.ID, ""); err != nil {
		t.Fatal(err)
	}
	hits, err := p.FindRefund(context.Background(), provider.Lookup{Tags: r.Tags, ChargeID: r.ChargeID})
	if err != nil || len(hits) != 1 || hits[0].Status != provider.Failed || hits[0].FailureReason == "" {
		t.Errorf("got %+v, %v, want 1", hits, err)
	}
}
