package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// stripeCharge is a charge as Stripe answers it, with all fields: a server has to read all of it.
//
//go:embed stripe_charge.json
var stripeCharge string

// delayMark in a charge's description makes the provider take that long for it: "delay=5s".
const delayMark = "delay="

// hookPath is where the stub receives events, as a webhook receiver that answers at once.
const hookPath = "/hook"

// stub is the loopback provider. It remembers only which idempotency keys it saw. The charge's id
// is made from the key, so a repeated key gets the same charge, as in Stripe's replay. It speaks
// HTTP on bare connections, because an ordinary server would take a share of the two cores that is
// not to be measured.
type stub struct {
	delay    time.Duration
	calls    atomic.Int64 // about charges and intents: posts, and reads
	posts    atomic.Int64
	inFlight atomic.Int64
	most     atomic.Int64 // the largest inFlight
	hooks    atomic.Int64

	mu      sync.Mutex
	keys    map[uint64]struct{}
	ids     map[string]struct{} // of events
	intents map[string]url.Values
}

// stubStats is what GET /bench/stats answers.
type stubStats struct {
	Calls        int64 `json:"calls"`
	Posts        int64 `json:"posts"`
	Keys         int64 `json:"keys"`
	MostInFlight int64 `json:"most_in_flight"`
	Hooks        int64 `json:"hooks"`  // deliveries of events
	Events       int64 `json:"events"` // different ones
}

func stubMain(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("bench stub", flag.ContinueOnError)
	listen := fs.String("listen", "127.0.0.1:0", "address")
	delay := fs.Duration("delay", 0, "how long each charge takes")
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	l, err := listenOn(ctx, *listen)
	if err != nil {
		return err
	}
	announce(l)
	s := newStub(*delay)
	go func() {
		<-untilOrphaned(ctx)
		_ = l.Close()
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return nil //nolint:nilerr // closed: we are to stop
		}
		go s.serve(c)
	}
}

func newStub(delay time.Duration) *stub {
	return &stub{
		delay: delay, keys: map[uint64]struct{}{}, ids: map[string]struct{}{},
		intents: map[string]url.Values{},
	}
}

func (s *stub) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReaderSize(c, 4096)
	var out []byte
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		status, answer := s.answer(req, string(body))
		out = append(out[:0], "HTTP/1.1 "...)
		out = append(out, status...)
		out = append(out, "\r\nContent-Type: application/json\r\n"+
			"Request-Id: req_benchstub000000\r\nContent-Length: "...)
		out = strconv.AppendInt(out, int64(len(answer)), 10)
		out = append(out, "\r\n\r\n"...)
		out = append(out, answer...)
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

func (s *stub) answer(req *http.Request, body string) (status, answer string) {
	path := strings.TrimSuffix(req.URL.Path, "/")
	if strings.HasPrefix(path, "/v1/charges") || strings.HasPrefix(path, intentsPath) {
		s.calls.Add(1)
	}
	switch {
	case req.Method == http.MethodPost && path == "/v1/charges":
		return s.charge(req.Header.Get("Idempotency-Key"), body)
	case req.Method == http.MethodPost && strings.HasPrefix(path, intentsPath):
		return s.intent(strings.TrimPrefix(path, intentsPath), req.Header.Get("Idempotency-Key"),
			body)
	case req.Method == http.MethodGet && (path == "/v1/charges" || path == intentsPath):
		return "200 OK", `{"object":"list","data":[],"has_more":false,"url":"` + path + `"}`
	case path == hookPath:
		s.hooks.Add(1)
		s.mu.Lock()
		s.ids[req.Header.Get("Webhook-Id")] = struct{}{}
		s.mu.Unlock()
		return "200 OK", "{}"
	case path == "/bench/stats":
		s.mu.Lock()
		keys, events := len(s.keys), len(s.ids)
		s.mu.Unlock()
		return "200 OK", string(mustJSON(stubStats{
			s.calls.Load(), s.posts.Load(), int64(keys), s.most.Load(), s.hooks.Load(), int64(events),
		}))
	}
	return "404 Not Found",
		`{"error":{"type":"invalid_request_error","message":"the stub knows no such route"}}`
}

func (s *stub) charge(key, body string) (status, answer string) {
	form, err := url.ParseQuery(body)
	if err != nil || key == "" {
		return unfit, badForm
	}
	sum := s.posted(key)
	s.wait(form.Get("description"))
	return "200 OK", renderCharge(sum, form, "null")
}

const (
	unfit   = "400 Bad Request"
	badForm = `{"error":{"type":"invalid_request_error","message":"bad form or no key"}}`
)

// posted counts a request, and gives a number that stands for its key.
func (s *stub) posted(key string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, key)
	sum := h.Sum64()
	s.posts.Add(1)
	s.mu.Lock()
	s.keys[sum] = struct{}{}
	s.mu.Unlock()
	return sum
}

// renderCharge is the charge that a form asks for; intent is JSON.
func renderCharge(sum uint64, form url.Values, intent string) string {
	amount, captured := form.Get("amount"), form.Get("capture")
	if captured != "false" {
		captured = "true"
	}
	taken := "0"
	if captured == "true" {
		taken = amount
	}
	return chargeTemplate.fill(map[string]string{
		"id": fmt.Sprintf("ch_3Nw%020d", sum), "amount": amount, "amount_captured": taken,
		"captured": captured,
		"created":  strconv.FormatInt(time.Now().Unix(), 10), "currency": form.Get("currency"),
		"metadata": metadataOf(form), "payment_intent": intent,
	})
}

// metadataOf is the metadata of a form, as JSON.
func metadataOf(form url.Values) string {
	metadata := map[string]string{}
	for k, v := range form {
		if name, ok := strings.CutPrefix(k, "metadata["); ok {
			metadata[strings.TrimSuffix(name, "]")] = v[0]
		}
	}
	return string(mustJSON(metadata))
}

// wait waits as long as the provider takes.
func (s *stub) wait(description string) {
	delay := s.delay
	if _, asked, ok := strings.Cut(description, delayMark); ok {
		if d, err := time.ParseDuration(asked); err == nil {
			delay = d
		}
	}
	if delay <= 0 {
		return
	}
	n := s.inFlight.Add(1)
	for m := s.most.Load(); n > m && !s.most.CompareAndSwap(m, n); m = s.most.Load() {
	}
	time.Sleep(delay)
	s.inFlight.Add(-1)
}

// template is text with places, cut up once.
type template []string

var chargeTemplate = cutTemplate(stripeCharge)

// cutTemplate leaves text at even places and names at odd ones.
func cutTemplate(text string) template {
	var t template
	for _, part := range strings.Split(text, "{{") {
		if name, rest, ok := strings.Cut(part, "}}"); ok {
			t = append(t, name, rest)
		} else {
			t = append(t, part)
		}
	}
	return t
}

func (t template) fill(values map[string]string) string {
	var b strings.Builder
	b.Grow(4096)
	for i, part := range t {
		if i%2 == 1 {
			part = values[part]
		}
		b.WriteString(part)
	}
	return b.String()
}

// readStubStats asks a running stub what it saw.
func readStubStats(ctx context.Context, base string) (s stubStats, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/bench/stats", nil)
	if err != nil {
		return s, err
	}
	res, err := watcher.Do(req)
	if err != nil {
		return s, err
	}
	defer func() { _ = res.Body.Close() }()
	return s, json.NewDecoder(res.Body).Decode(&s)
}
