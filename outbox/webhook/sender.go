package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"paidonce/outbox"
)

const (
	// attemptLimit is how long one attempt takes, all in all: name, connection, TLS, request, answer.
	attemptLimit = 10 * time.Second
	// connectLimit is a part of it: who does not take a connection within this time will not within the rest either.
	connectLimit = 5 * time.Second
	// bodyKept is how much of an answer is read, and kept for the operator.
	bodyKept = 8 << 10
	// headerMax is how much header an answer may have.
	headerMax = 32 << 10
	// idleFor is how long a connection waits for the next event: shorter than what common servers and balancers allow, so that we close first.
	idleFor = 30 * time.Second
	// idlePerHost is how many do: as many as are sent at once to an endpoint, so that a burst does not connect anew for each event.
	idlePerHost = 64
	// idleInAll bounds them: file descriptors.
	idleInAll = 1024
)

// Config is what a sender is made of.
type Config struct {
	Guard   Guard
	Timeout time.Duration // of an attempt; 0: ten seconds
}

// Sender sends events over HTTP. Safe for concurrent use.
type Sender struct {
	transport *http.Transport // no client: an answer that points elsewhere is an answer, and not a success. Who moved registers the new address, which is checked then
	timeout   time.Duration
}

var _ outbox.Sender = (*Sender)(nil)

// New returns a sender.
func New(cfg Config) *Sender {
	dialer := net.Dialer{Timeout: connectLimit, Resolver: cfg.Guard.resolver(), ControlContext: cfg.Guard.control}
	timeout := cfg.Timeout
	if timeout == 0 {
		timeout = attemptLimit
	}
	return &Sender{timeout: timeout, transport: &http.Transport{
		Proxy:               nil, // a proxy of the environment would connect to what the guard refuses
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: connectLimit,
		DisableCompression:  true, // of an answer only the beginning is looked at
		MaxIdleConns:        idleInAll, MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleFor, MaxResponseHeaderBytes: headerMax,
	}}
}

// Send makes one attempt: the message's bytes, with a new time and new signatures. An error means that there was no answer.
func (s *Sender) Send(ctx context.Context, m outbox.Message) (outbox.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(m.Payload))
	if err != nil {
		return outbox.Answer{}, errors.New("the endpoint's URL cannot be used")
	}
	if err := sign(request.Header, m, time.Now()); err != nil {
		return outbox.Answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Paidonce-Webhooks/1")
	response, err := s.transport.RoundTrip(request)
	if err != nil {
		return outbox.Answer{}, plain(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer := outbox.Answer{Status: response.StatusCode, RetryAfter: retryAfter(response.Header, time.Now())}
	if answer.Status != http.StatusSwitchingProtocols { // that one hands the bare connection over, on which no limit of time ends a read
		// The status is the answer. A body that does not end, or not in time, changes nothing about it.
		answer.Body, _ = io.ReadAll(io.LimitReader(response.Body, bodyKept))
	}
	return answer, nil
}

// CloseIdle closes the connections that nobody uses.
func (s *Sender) CloseIdle() { s.transport.CloseIdleConnections() }

// sign signs with all active secrets, in two dialects: that of Standard Webhooks, and Stripe's, so that the libraries of either verify it.
func sign(h http.Header, m outbox.Message, now time.Time) error {
	if len(m.Secrets) == 0 {
		return errors.New("the endpoint has no secret")
	}
	signatures := make([]string, 0, len(m.Secrets))
	stripe := []string{"t=" + strconv.FormatInt(now.Unix(), 10)}
	for _, secret := range m.Secrets {
		w, err := standard.NewWebhook(secret)
		if err != nil {
			return errors.New("the endpoint's secret cannot be used")
		}
		signature, err := w.Sign(m.EventID, now, m.Payload)
		if err != nil {
			return err
		}
		signatures = append(signatures, signature)
		mac := hmac.New(sha256.New, []byte(secret)) // Stripe's key is the secret as it is written
		_, _ = fmt.Fprintf(mac, "%d.%s", now.Unix(), m.Payload)
		stripe = append(stripe, "v1="+hex.EncodeToString(mac.Sum(nil)))
	}
	h.Set(standard.HeaderWebhookID, m.EventID)
	h.Set(standard.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	h.Set(standard.HeaderWebhookSignature, strings.Join(signatures, " "))
	h.Set("Stripe-Signature", strings.Join(stripe, ","))
	return nil
}

// retryAfter reads the header in either of its forms; 0: there is none that makes sense. A date is one by the endpoint's clock, which its answer tells.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if told, err := http.ParseTime(h.Get("Date")); err == nil {
		now = told
	}
	if seconds, err := strconv.ParseInt(strings.TrimSpace(value), 10, 32); err == nil {
		return max(time.Duration(seconds)*time.Second, 0)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// plain says in few words why there was no answer.
func plain(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	return err
}
