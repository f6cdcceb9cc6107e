package paidonce

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	// A restarting server meets few attempts in this time, and people do not mind it.
	shortestPause = 200 * time.Millisecond
	// A client of a server that is down for long asks six times a minute.
	longestPause = 10 * time.Second
	// Paidonce asks for a minute at most, a proxy before it for whatever it likes: whoever has a
	// long deadline comes back in this time all the same.
	longestAsked = time.Hour
	// A page of 100 charges has a tenth of this, with any metadata. A longer answer is cut, and no
	// longer JSON.
	longestAnswer = 16 << 20
)

// outgoing is a request, the same at each attempt, byte for byte.
type outgoing struct {
	method, address string
	object          string // the "object" that a successful answer must have
	body            []byte
	key             string
}

type answer struct {
	status    int
	header    http.Header
	body      []byte
	uncertain bool // whether an earlier attempt of the call may have been carried out
}

func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

func (a answer) success() bool {
	return a.status >= http.StatusOK && a.status < http.StatusMultipleChoices
}

// take returns an error if the same request should be sent again.
func (a answer) take(object string) error {
	if a.success() {
		var got struct {
			Object string `json:"object"`
		}
		if json.Unmarshal(a.body, &got) != nil || got.Object != object {
			// This may be a proxy's page, or the beginning of an answer: the outcome of the request
			// is not known.
			return fmt.Errorf("the answer with status %d is not from Paidonce: it is no %s",
				a.status, object)
		}
		return nil
	}
	e := errorOf(a)
	switch {
	case e.Advice == "stop":
		return nil
	case a.status >= http.StatusInternalServerError, a.status == http.StatusRequestTimeout,
		a.status == http.StatusConflict,
		a.status == http.StatusTooEarly, a.status == http.StatusTooManyRequests:
		return e
	}
	return nil
}

// exchange sends a request until there is an answer.
func (c *Client) exchange(ctx context.Context, o outgoing) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Deadline)
	defer cancel()
	deadline, _ := ctx.Deadline()
	for attempt := 0; ; attempt++ {
		a, err := c.attempt(ctx, o)
		if err == nil {
			err = a.take(o.object)
		}
		if err == nil {
			a.uncertain = attempt > 0
			return a, nil
		}
		pause := pauseAfter(attempt, retryAfter(a.header, time.Now()), rand.Float64()) //nolint:gosec // nothing depends on its secrecy
		if ctx.Err() != nil || time.Now().Add(pause).After(deadline) {
			return a, fmt.Errorf("%w: %w", ErrNoOutcome, err)
		}
		select {
		case <-ctx.Done():
			return a, fmt.Errorf("%w: %w", ErrNoOutcome, err)
		case <-time.After(pause):
		}
	}
}

func (c *Client) attempt(ctx context.Context, o outgoing) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Attempt)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, o.method, o.address, bytes.NewReader(o.body))
	if err != nil {
		return answer{}, err
	}
	// Without this, net/http cannot repeat the request by itself, and we know of each attempt.
	req.GetBody = nil
	req.Header.Set("Authorization", "Bearer "+c.cfg.APIKey)
	req.Header.Set("Accept", "application/json")
	if len(o.body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if o.key != "" {
		req.Header.Set("Idempotency-Key", o.key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, longestAnswer))
	return answer{status: res.StatusCode, header: res.Header, body: text}, err
}

// retryAfter reads a Retry-After: a number of seconds, or a date by the sender's clock. It returns
// longestAsked at most.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if told, err := http.ParseTime(h.Get("Date")); err == nil {
		now = told
	}
	asked := h.Get("Retry-After")
	var d time.Duration
	if seconds, err := strconv.ParseInt(asked, 10, 64); err == nil {
		d = time.Duration(min(seconds, int64(longestAsked/time.Second))) * time.Second
	} else if at, err := http.ParseTime(asked); err == nil {
		d = at.Sub(now)
	}
	return min(max(0, d), longestAsked)
}

// pauseAfter returns the pause after an attempt: never less than asked, which the server requests,
// and spread, so that clients do not stay in step.
func pauseAfter(attempt int, asked time.Duration, random float64) time.Duration {
	most := min(longestPause, shortestPause<<min(attempt, 10))
	return asked + time.Duration(float64(most)/2*(1+random))
}
