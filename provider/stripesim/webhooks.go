package stripesim

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Endpoint is a receiver of webhooks.
type Endpoint struct {
	URL string `json:"url"`
	// signs; more than one, separated by commas, give several signatures
	Secret string `json:"secret"`
}

// WebhookMode says how events are told. The zero value sends each event once, in the background,
// right after the answer is ready.
type WebhookMode struct {
	Off bool `json:"off"`
	// the answer waits until each endpoint has taken the event, at most 5 s
	BeforeAnswer bool `json:"before_answer"`
	DelayMS      int  `json:"delay_ms"`
	Duplicates   int  `json:"duplicates"` // how many further times each event is sent
}

const (
	hookTries   = 5
	hookTimeout = 5 * time.Second
	hookQueue   = 20000
	hookWorkers = 8
)

var hookPauses = [...]time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second, 5 * time.Second}

// notifier delivers events. Its queue is bounded: what doesn't fit is counted as failed, never
// waited for.
type notifier struct {
	ctx               context.Context
	client            *http.Client
	jobs              chan hookJob
	running           sync.WaitGroup
	delivered, failed atomic.Int64

	mu        sync.Mutex
	endpoints []Endpoint
	mode      WebhookMode
}

type hookJob struct {
	to   Endpoint
	body []byte
	try  int
}

func newNotifier(ctx context.Context, endpoints []Endpoint) *notifier {
	n := &notifier{
		ctx: ctx, endpoints: endpoints, jobs: make(chan hookJob, hookQueue),
		client: &http.Client{
			Timeout:       hookTimeout,
			Transport:     &http.Transport{MaxIdleConnsPerHost: 2 * hookWorkers, IdleConnTimeout: time.Minute},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	for range hookWorkers {
		n.running.Go(n.work)
	}
	return n
}

func (n *notifier) config() ([]Endpoint, WebhookMode) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.endpoints, n.mode
}

func (n *notifier) set(endpoints []Endpoint, mode *WebhookMode) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if endpoints != nil {
		n.endpoints = endpoints
	}
	if mode != nil {
		n.mode = *mode
	}
}

// SetWebhooks replaces the endpoints and the way they are told. It holds for events that happen
// from now on.
func (s *Server) SetWebhooks(endpoints []Endpoint, mode WebhookMode) {
	if endpoints == nil {
		endpoints = []Endpoint{}
	}
	s.hooks.set(endpoints, &mode)
}

// tell hands events over. It returns at once, except in BeforeAnswer mode.
func (n *notifier) tell(events []*event) {
	endpoints, mode := n.config()
	if mode.Off || len(endpoints) == 0 || len(events) == 0 {
		return
	}
	for _, e := range events {
		body := rendered(e)
		for _, to := range endpoints {
			for range 1 + mode.Duplicates {
				n.start(hookJob{to: to, body: body}, mode)
			}
		}
	}
}

func (n *notifier) start(j hookJob, mode WebhookMode) {
	if mode.BeforeAnswer {
		if !n.deliver(j) {
			n.again(j)
		}
		return
	}
	if mode.DelayMS > 0 {
		n.later(j, time.Duration(mode.DelayMS)*time.Millisecond)
		return
	}
	n.queue(j)
}

func (n *notifier) queue(j hookJob) {
	select {
	case n.jobs <- j:
	default:
		n.failed.Add(1)
	}
}

// later queues a job after a pause, without a worker or a goroutine that waits.
func (n *notifier) later(j hookJob, pause time.Duration) {
	time.AfterFunc(pause, func() {
		if n.ctx.Err() == nil {
			n.queue(j)
		}
	})
}

func (n *notifier) again(j hookJob) {
	if j.try >= len(hookPauses) || j.try+1 >= hookTries {
		n.failed.Add(1)
		return
	}
	pause := hookPauses[j.try]
	j.try++
	n.later(j, pause)
}

func (n *notifier) work() {
	for {
		select {
		case <-n.ctx.Done():
			return
		case j := <-n.jobs:
			if !n.deliver(j) {
				n.again(j)
			}
		}
	}
}

func (n *notifier) deliver(j hookJob) bool {
	req, err := http.NewRequestWithContext(n.ctx, http.MethodPost, j.to.URL, bytes.NewReader(j.body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "Stripe/1.0 (simulated)")
	req.Header.Set("Stripe-Signature", Sign(j.body, j.to.Secret, time.Now()))
	resp, err := n.client.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return false
	}
	n.delivered.Add(1)
	return true
}

func (n *notifier) wait() { n.running.Wait() }

// Sign makes the Stripe-Signature header of a body: a time and one v1 signature for each of the
// comma-separated secrets.
func Sign(body []byte, secrets string, at time.Time) string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	header := "t=" + stamp
	for _, secret := range splitList(secrets) {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(stamp))
		mac.Write([]byte{'.'})
		mac.Write(body)
		header += ",v1=" + hex.EncodeToString(mac.Sum(nil))
	}
	return header
}
