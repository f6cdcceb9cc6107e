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
	// attemptLimit is how long one attempt may take in all: DNS, connection, TLS, request and
	// answer.
	attemptLimit = 10 * time.Second
	// connectLimit is how much of attemptLimit connecting may take: a server that accepts no
	// connection within this time will not accept one within the rest either.
	connectLimit = 5 * time.Second
	// bodyKept is how much of an answer is read, and kept for the operator.
	bodyKept = 8 << 10
	// headerMax is how many bytes of headers an answer may have: several times what servers send.
	headerMax = 32 << 10
	// idleFor is how long a connection waits for the next event: shorter than what common servers
	// and load balancers allow, so that this side closes first.
	idleFor = 30 * time.Second
	// idlePerHost is how many connections to one host are kept: twice as many as a relay uses at
	// once, so that a burst does not connect anew for each event.
	idlePerHost = 64
	// idleTotal bounds all idle connections, which each hold a file descriptor.
	idleTotal = 1024
)

// Config is what a sender is made of.
type Config struct {
	Guard   Guard
	Timeout time.Duration // of an attempt; 0: ten seconds
}

// Sender sends events over HTTP. Safe for concurrent use.
type Sender struct {
	// The transport is used without an http.Client, because redirects are not followed. An endpoint
	// that has moved has to be registered under its new address, which is checked then.
	transport *http.Transport
	timeout   time.Duration
}

var _ outbox.Sender = (*Sender)(nil)

// New returns a sender.
func New(cfg Config) *Sender {
	dialer := net.Dialer{
		Timeout: connectLimit, Resolver: cfg.Guard.resolver(), ControlContext: cfg.Guard.control,
	}
	timeout := cfg.Timeout
	if timeout == 0 {
		timeout = attemptLimit
	}
	return &Sender{timeout: timeout, transport: &http.Transport{
		// A proxy of the environment would connect to what the guard refuses.
		Proxy:               nil,
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: connectLimit,
		DisableCompression:  true, // only the beginning of an answer is read
		MaxIdleConns:        idleTotal, MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleFor,
		MaxResponseHeaderBytes: headerMax,
	}}
}

// Send makes one attempt: the message's bytes, with a new time and new signatures. An error means
// that there was no answer.
func (s *Sender) Send(ctx context.Context, m outbox.Message) (outbox.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL,
		bytes.NewReader(m.Payload))
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
	answer := outbox.Answer{
		Status: response.StatusCode, RetryAfter: retryAfter(response.Header, time.Now()),
	}
	// A 101 hands over the bare connection, on which no time limit ends a read.
	if answer.Status != http.StatusSwitchingProtocols {
		// The status is the answer. A body that cannot be read in time changes nothing about it.
		answer.Body, _ = io.ReadAll(io.LimitReader(response.Body, bodyKept))
	}
	return answer, nil
}

// CloseIdle closes the connections that nobody uses.
func (s *Sender) CloseIdle() { s.transport.CloseIdleConnections() }

// sign signs the message with all active secrets, in the forms of Standard Webhooks and of Stripe,
// so that the libraries of either verify it.
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

// retryAfter reads the header in either of its forms, and returns 0 when there is none that makes
// sense. A date is by the endpoint's clock, which the Date of its answer shows.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	if seconds, err := strconv.ParseInt(strings.TrimSpace(value), 10, 32); err == nil {
		return max(time.Duration(seconds)*time.Second, 0)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// plain returns an error that says in few words why there was no answer.
func plain(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	return err
}
