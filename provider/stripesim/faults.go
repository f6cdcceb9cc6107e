package stripesim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// The things that can go wrong. "Before" is before anything is executed, "after" is when the effect
// and the answer are stored and only the answer is missing.
const (
	Delay      = "delay"       // only the delays of the fault
	DropBefore = "drop_before" // the connection ends, nothing was executed
	DropAfter  = "drop_after"  // executed and stored, then the connection ends
	// an error answer, nothing was executed; stored under the key when Store is set
	StatusBefore = "status_before"
	// executed, but answered, and stored, as an error: the "stored 500"
	StatusAfter = "status_after"
	Truncate    = "truncate"   // executed; the connection ends in the middle of the body
	Garbage     = "garbage"    // executed; 200 with a body that isn't JSON
	Hang        = "hang"       // nothing is executed, no answer ever comes
	HangAfter   = "hang_after" // executed and stored, no answer ever comes
)

// How a dropped connection looks to the client.
const (
	// a few bytes of an answer, then the end: Go's transport can't send the request again by itself
	WirePartial = "partial"
	// closed without a byte: on a reused connection Go sends the request again
	WireEOF   = "eof"
	WireReset = "reset" // TCP reset
	WireEarly = "early" // answers of 103, more than a client puts up with, and no final one
)

// Fault says what goes wrong. In JSON it may also be only the name of its type.
type Fault struct {
	Type string `json:"type"`
	// before executing, with the key reserved: others get 409
	DelayMS int `json:"delay_ms,omitempty"`
	// after executing: others already get the replay
	DelayAfterMS int    `json:"delay_after_ms,omitempty"`
	Wire         string `json:"wire,omitempty"`   // for the drops; default partial
	Status       int    `json:"status,omitempty"` // for the statuses; default 500
	Store        bool   `json:"store,omitempty"`  // for status_before
	// for the statuses and garbage: instead of Stripe's error shape
	Body       string `json:"body,omitempty"`
	RetryAfter string `json:"retry_after,omitempty"` // Retry-After of an answer
}

// UnmarshalJSON takes an object or a plain name.
func (f *Fault) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &f.Type)
	}
	type plain Fault
	return strictJSON(b, (*plain)(f))
}

func (f *Fault) stores() bool { return f.Type == StatusAfter || f.Type == StatusBefore && f.Store }

func (f *Fault) body() []byte {
	if f.Body != "" {
		return []byte(f.Body)
	}
	return rendered(errorFor(f.Status))
}

// Match says which requests a rule is for; empty fields match all.
type Match struct {
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"` // a prefix, such as /v1/charges
	Key    string `json:"key,omitempty"`  // the Idempotency-Key
	Source string `json:"source,omitempty"`
	// further parameters by full name, such as metadata[order]
	Params map[string]string `json:"params,omitempty"`
}

// Rule arms a fault for the requests that match. The first rule that matches a request, and is
// neither skipping nor used up nor left out by chance, decides.
type Rule struct {
	ID          int     `json:"id"`
	Match       Match   `json:"match"`
	Count       int     `json:"count"`                 // how often it strikes; 0: until cleared
	Skip        int     `json:"skip"`                  // how many matching requests pass first
	Probability float64 `json:"probability,omitempty"` // 0 means always
	Fault       Fault   `json:"fault"`
	Hits        int     `json:"hits"` // how often it has struck
}

type faultSet struct {
	mu    sync.Mutex
	rules []*Rule
	next  int
	dice  *rand.Rand
}

func newFaultSet(seed uint64) *faultSet {
	if seed == 0 {
		seed = rand.Uint64() //nolint:gosec // dice, not secrets
	}
	return &faultSet{dice: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // dice, not secrets
}

func (s *faultSet) add(r Rule) (int, error) {
	if !has("delay drop_before drop_after status_before status_after truncate garbage hang hang_after", r.Fault.Type) {
		return 0, fmt.Errorf("unknown fault type %q", r.Fault.Type)
	}
	if r.Fault.Wire == "" {
		r.Fault.Wire = WirePartial
	}
	if !has("partial eof reset early", r.Fault.Wire) {
		return 0, fmt.Errorf("unknown wire %q: partial, eof, reset or early", r.Fault.Wire)
	}
	if r.Fault.Status == 0 {
		r.Fault.Status = http.StatusInternalServerError
	}
	if r.Fault.Status < 200 || r.Fault.Status > 599 {
		return 0, fmt.Errorf("status %d is not between 200 and 599", r.Fault.Status)
	}
	if r.Count < 0 || r.Skip < 0 || r.Probability < 0 || r.Probability > 1 {
		return 0, fmt.Errorf("count and skip can't be negative, and probability is between 0 and 1")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	r.ID, r.Hits = s.next, 0
	s.rules = append(s.rules, &r)
	return r.ID, nil
}

func (s *faultSet) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = nil
}

func (s *faultSet) list() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Rule, 0, len(s.rules))
	for _, r := range s.rules {
		out = append(out, *r)
	}
	return out
}

func (s *faultSet) match(c *call) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if r.Count > 0 && r.Hits >= r.Count || !r.Match.fits(c) {
			continue
		}
		if r.Skip > 0 {
			r.Skip--
			continue
		}
		if r.Probability > 0 && s.dice.Float64() >= r.Probability {
			continue
		}
		r.Hits++
		f := r.Fault
		return &f
	}
	return nil
}

// source is what a call pays with, as its parameters have it.
func (c *call) source() string {
	for _, name := range []string{"source", "payment_method_data[card][token]", "payment_method"} {
		if v := c.params.get(name); v != "" {
			return v
		}
	}
	return ""
}

func (m *Match) fits(c *call) bool {
	if m.Method != "" && !strings.EqualFold(m.Method, c.method) || !strings.HasPrefix(c.path, m.Path) ||
		m.Key != "" && m.Key != c.key || m.Source != "" && m.Source != c.source() {
		return false
	}
	for name, want := range m.Params {
		if c.params.get(name) != want {
			return false
		}
	}
	return true
}

// failBefore does what goes wrong before execution; true means that the request is over.
func (s *Server) failBefore(w http.ResponseWriter, r *http.Request, c *call, entry *logEntry) bool {
	f := c.fault
	switch f.Type {
	case DropBefore:
		s.pause(f.DelayMS)
		s.counts.dropped.Add(1)
		s.cut(w, r, f.Wire)
	case Hang:
		s.counts.dropped.Add(1)
		s.hang(w, r)
	case StatusBefore:
		if f.Store && c.method == http.MethodPost {
			return false
		}
		s.pause(f.DelayMS)
		entry.Status = f.Status
		f.decorate(w.Header())
		writeAnswer(w, c, answer{status: f.Status, body: f.body()})
	default:
		if c.method != http.MethodPost { // a POST waits with its key reserved
			s.pause(f.DelayMS)
		}
		return false
	}
	return true
}

// failAfter does what goes wrong once the effect is stored; true means that the request is over.
func (s *Server) failAfter(w http.ResponseWriter, r *http.Request, c *call, entry *logEntry, a *answer) bool {
	f := c.fault
	if f == nil {
		return false
	}
	s.pause(f.DelayAfterMS)
	switch f.Type {
	case DropAfter:
		s.counts.dropped.Add(1)
		s.cut(w, r, f.Wire)
	case HangAfter:
		s.counts.dropped.Add(1)
		s.hang(w, r)
	case Truncate:
		s.counts.dropped.Add(1)
		setHeaders(w.Header(), c, *a)
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body[:len(a.body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case Garbage:
		entry.Status = http.StatusOK
		body := f.Body
		if body == "" {
			body = "<html><body>It works!</body></html>\x00\xff"
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write([]byte(body))
	default:
		if f.Type == StatusAfter && c.method != http.MethodPost {
			a.status, a.body = f.Status, f.body()
		}
		f.decorate(w.Header())
		return false
	}
	return true
}

func (f *Fault) decorate(h http.Header) {
	if f.RetryAfter != "" {
		h.Set("Retry-After", f.RetryAfter)
	}
}

// earlyAnswers is twice as many as Go's client reads before it gives up.
const earlyAnswers = 10

// cut ends the connection without an answer.
func (s *Server) cut(w http.ResponseWriter, r *http.Request, wire string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	switch wire {
	case WirePartial:
		_, _ = conn.Write([]byte("HTTP/1.1 20"))
	case WireEarly:
		_, _ = conn.Write(bytes.Repeat([]byte("HTTP/1.1 103 Early Hints\r\n\r\n"), earlyAnswers))
	case WireReset:
		if tcp, isTCP := conn.(*net.TCPConn); isTCP {
			_ = tcp.SetLinger(0)
		}
	}
	_ = conn.Close()
	_ = r.Body.Close()
}

// hang keeps the request until the client or the simulator goes.
func (s *Server) hang(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closing.Done():
	}
	panic(http.ErrAbortHandler)
}
