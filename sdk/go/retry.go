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
	// Long enough for a server that restarts to be noticed by few attempts, too short for a person to mind.
	shortestPause = 200 * time.Millisecond
	// Who waits for a server that is down for long asks six times a minute.
	longestPause = 10 * time.Second
	// A page of 100 charges has a tenth of it, whatever is in their metadata. What is longer is cut, and no JSON any more.
	longestAnswer = 16 << 20
)

// outgoing is a request: the same at each attempt, byte for byte.
type outgoing struct {
	method, address string
	object          string // what is asked for, as "object" of a success names it
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

// take returns an error when the same request should be sent again.
func (a answer) take(object string) error {
	if a.success() {
		var got struct {
			Object string `json:"object"`
		}
		if json.Unmarshal(a.body, &got) != nil || got.Object != object {
			// A proxy's page, say, or the beginning of an answer: what became of the request is not known.
			return fmt.Errorf("the answer with status %d is not from Paidonce: it is no %s", a.status, object)
		}
		return nil
	}
	e := errorOf(a)
	switch {
	case e.Advice == "stop":
		return nil
	case a.status >= http.StatusInternalServerError, a.status == http.StatusRequestTimeout, a.status == http.StatusConflict,
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
	// Without it net/http cannot send the request again behind our back, and we know of each attempt.
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
