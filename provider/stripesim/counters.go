package stripesim

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Stats are the counts since the start or the last reset. They aren't in the ledger; Charges and
// the lines after it are.
type Stats struct {
	Requests int64 `json:"requests"` // to Stripe's paths
	// POST /v1/charges seen, whatever became of them
	ChargeRequests  int64 `json:"charge_requests"`
	CaptureRequests int64 `json:"capture_requests"` // POST …/capture seen
	RefundRequests  int64 `json:"refund_requests"`  // POST /v1/refunds seen
	IntentRequests  int64 `json:"intent_requests"`  // POST /v1/payment_intents seen
	ConfirmRequests int64 `json:"confirm_requests"` // POST …/confirm seen
	// POSTs that ran and left a record or an error under a key
	Executed int64 `json:"executed"`
	// of these, charges that were made, failed ones included
	ChargesExecuted  int64 `json:"charges_executed"`
	RefundsExecuted  int64 `json:"refunds_executed"`   // and refunds
	CapturesExecuted int64 `json:"captures_executed"`  // and captures
	Replayed         int64 `json:"replayed"`           // answered from a key
	Mismatched       int64 `json:"mismatched"`         // 400 idempotency_error
	InUse            int64 `json:"in_use"`             // 409
	Refused          int64 `json:"refused"`            // refused before anything ran
	Dropped          int64 `json:"dropped"`            // left without a whole answer by a fault
	DistinctKeys     int64 `json:"distinct_keys"`      // idempotency keys seen
	Charges          int64 `json:"charges"`            // in the ledger
	Succeeded        int64 `json:"charges_succeeded"`  // of these
	Failed           int64 `json:"charges_failed"`     // of these
	Refunds          int64 `json:"refunds"`            // in the ledger
	Intents          int64 `json:"intents"`            // in the ledger
	Disputes         int64 `json:"disputes"`           // in the ledger
	Events           int64 `json:"events"`             // in the ledger
	Delivered        int64 `json:"webhooks_delivered"` // answered 2xx
	Undelivered      int64 `json:"webhooks_failed"`    // given up
}

type counters struct {
	requests, chargeReqs, captureReqs, refundReqs           atomic.Int64
	intentReqs, confirmReqs                                 atomic.Int64
	executed, charges, refunds, captures                    atomic.Int64
	replayed, mismatched, inUse, refused, dropped, distinct atomic.Int64
	mu                                                      sync.Mutex
	keys                                                    map[string]struct{}
}

func (n *counters) seen(method, path string) {
	n.requests.Add(1)
	if method != http.MethodPost {
		return
	}
	switch {
	case path == "/v1/charges":
		n.chargeReqs.Add(1)
	case path == "/v1/refunds":
		n.refundReqs.Add(1)
	case path == "/v1/payment_intents":
		n.intentReqs.Add(1)
	case strings.HasSuffix(path, "/confirm"):
		n.confirmReqs.Add(1)
	case strings.HasSuffix(path, "/capture"):
		n.captureReqs.Add(1)
	}
}

func (n *counters) key(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.keys == nil {
		n.keys = map[string]struct{}{}
	}
	n.keys[name] = struct{}{}
	n.distinct.Store(int64(len(n.keys)))
}

func (n *counters) done(rec *record, _ *apiError) {
	n.executed.Add(1)
	switch rec.Op {
	case opCharge:
		n.charges.Add(1)
	case opIntent, opConfirm:
		if rec.Charge != nil {
			n.charges.Add(1)
		}
	case opRefund:
		n.refunds.Add(1)
	case opCapture:
		n.captures.Add(1)
	}
}

func (n *counters) reset() {
	for _, c := range []*atomic.Int64{
		&n.requests, &n.chargeReqs, &n.captureReqs, &n.refundReqs, &n.intentReqs, &n.confirmReqs, &n.executed, &n.charges, &n.refunds, &n.captures,
		&n.replayed, &n.mismatched, &n.inUse, &n.refused, &n.dropped, &n.distinct,
	} {
		c.Store(0)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keys = nil
}

// Stats gives the counts of now.
func (s *Server) Stats() Stats {
	n := &s.counts
	out := Stats{
		Requests: n.requests.Load(), ChargeRequests: n.chargeReqs.Load(), CaptureRequests: n.captureReqs.Load(),
		IntentRequests: n.intentReqs.Load(), ConfirmRequests: n.confirmReqs.Load(), RefundRequests: n.refundReqs.Load(), Executed: n.executed.Load(), ChargesExecuted: n.charges.Load(),
		RefundsExecuted: n.refunds.Load(), CapturesExecuted: n.captures.Load(), Replayed: n.replayed.Load(),
		Mismatched: n.mismatched.Load(), InUse: n.inUse.Load(), Refused: n.refused.Load(), Dropped: n.dropped.Load(),
		DistinctKeys: n.distinct.Load(), Delivered: s.hooks.delivered.Load(), Undelivered: s.hooks.failed.Load(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Charges = int64(len(s.state.charges))
	out.Failed = s.state.failed
	out.Succeeded = out.Charges - out.Failed - s.state.pending
	out.Refunds = int64(len(s.state.refunds))
	out.Intents = int64(len(s.state.intents))
	out.Disputes = int64(len(s.state.disputes))
	out.Events = int64(len(s.state.events))
	return out
}

// logEntry is one line of the log of requests.
type logEntry struct {
	Time      time.Time `json:"time"`
	Method    string    `json:"method"`
	Path      string    `json:"path"`
	Key       string    `json:"idempotency_key,omitempty"`
	Status    int       `json:"status"` // 0: no answer was sent
	Replayed  bool      `json:"replayed,omitempty"`
	Fault     string    `json:"fault,omitempty"`
	RequestID string    `json:"request_id"`
	Millis    float64   `json:"ms"`
	params    params
}

// requestLog keeps the last requests in a ring.
type requestLog struct {
	mu    sync.Mutex
	ring  []*logEntry
	next  int
	total int
}

func newRequestLog(size int) *requestLog { return &requestLog{ring: make([]*logEntry, size)} }

func (l *requestLog) add(e *logEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring[l.next] = e
	l.next = (l.next + 1) % len(l.ring)
	l.total++
}

func (l *requestLog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.ring)
	l.next, l.total = 0, 0
}

// recent gives up to n entries, newest first.
func (l *requestLog) recent(n int) []*logEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	n = min(n, l.total, len(l.ring))
	out := make([]*logEntry, 0, n)
	for i := range n {
		out = append(out, l.ring[(l.next-1-i+2*len(l.ring))%len(l.ring)])
	}
	return out
}
