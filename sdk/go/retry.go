package paidonce

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	shortestPause = 200 * time.Millisecond
	longestPause  = 10 * time.Second
	longestAnswer = 16 << 20
)

type answer struct {
	status    int
	header    http.Header
	body      []byte
	uncertain bool // whether an earlier attempt of the call may have been carried out
}

func (a answer) replayed() bool { return a.header.Get("Idempotent-Replayed") == "true" }

// again tells whether the same request should be sent again.
func (a answer) again() bool {
	switch a.status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return a.status >= http.StatusInternalServerError && errorOf(a).Advice != "stop"
}

// exchange sends a request until there is an answer. It is the same request each time, byte for byte.
func (c *Client) exchange(ctx context.Context, method, address string, body []byte, key string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Deadline)
	defer cancel()
	deadline, _ := ctx.Deadline()
	for attempt := 0; ; attempt++ {
		a, err := c.attempt(ctx, method, address, body, key)
		if err == nil && !a.again() {
			a.uncertain = attempt > 0
			return a, nil
		}
		if err == nil {
			err = errorOf(a)
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

func (c *Client) attempt(ctx context.Context, method, address string, body []byte, key string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Attempt)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	// Without it net/http cannot send the request again behind our back, and we know of each attempt.
	req.GetBody = nil
	req.Header.Set("Authorization", "Bearer "+c.cfg.APIKey)
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, longestAnswer))
	return answer{status: res.StatusCode, header: res.Header, body: text}, err
}

// retryAfter reads a Retry-After, which is a number of seconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	asked := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(asked); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(asked); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// pauseAfter is never less than the server asks for, and never in step with other clients.
func pauseAfter(attempt int, asked time.Duration, random float64) time.Duration {
	most := min(longestPause, shortestPause<<min(attempt, 10))
	return asked + time.Duration(float64(most)/2*(1+random))
}
