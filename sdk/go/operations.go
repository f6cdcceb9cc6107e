package paidonce

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// begin stores the operation. If it was begun before, it must have been with the same request.
func begin(
	ctx context.Context, s Store, name, path string, params any,
) (op Operation, first bool, err error) {
	if name == "" {
		return op, false, errors.New("paidonce: an operation needs a name")
	}
	// encoding/json writes members and map keys in one order, so the same parameters give the same
	// bytes.
	body, err := json.Marshal(params)
	if err != nil {
		return op, false, err
	}
	fresh := Operation{Name: name, Key: rand.Text(), Path: path, Body: body, Begun: time.Now()}
	op, err = s.Begin(ctx, fresh)
	if err != nil {
		return op, false, err
	}
	if op.Path != path || !bytes.Equal(op.Body, body) {
		return op, false, fmt.Errorf("%w: %s", ErrMismatch, name)
	}
	return op, op.Key == fresh.Key, nil
}

func run[T any](ctx context.Context, c *Client, name, path string, params any) (*Result[T], error) {
	op, first, err := begin(ctx, c.cfg.Store, name, path, params)
	if err != nil {
		return nil, err
	}
	return drive[T](ctx, c, op, first)
}

// drive sends an operation until there is an answer, and stores that.
func drive[T any](ctx context.Context, c *Client, op Operation, first bool) (*Result[T], error) {
	// returned without asking again, since the server forgets its keys one day
	if op.Answer != nil {
		header := http.Header{"Request-Id": {op.Answer.RequestID}, "Idempotent-Replayed": {"true"}}
		return result[T](answer{status: op.Answer.Status, header: header, body: op.Answer.Body})
	}
	if time.Since(op.Begun) > c.cfg.MaxAge {
		return nil, fmt.Errorf("%w: %s", ErrStale, op.Name)
	}
	object := "charge"
	switch {
	case op.Path == "/v1/refunds":
		object = "refund"
	case strings.HasPrefix(op.Path, "/v1/payment_intents"):
		object = "payment_intent"
	}
	a, err := c.exchange(ctx, outgoing{
		method: http.MethodPost, address: c.at(op.Path), object: object, body: op.Body, key: op.Key,
	})
	if err != nil {
		return nil, err
	}
	// The answer is known, so it is stored even if the caller's context has ended meanwhile.
	ctx = context.WithoutCancel(ctx)
	e := errorOf(a)
	switch {
	case a.success() || e.declined():
		op.Answer = &Answer{Status: a.status, RequestID: a.header.Get("Request-Id"), Body: a.body}
		err = c.cfg.Store.Finish(ctx, op)
	case e.refuses() && (e.Replayed || first && !a.uncertain):
		// The corrected request may have the name, under a new key: nothing was done under this
		// one, and nothing will be, because its only attempt was refused, or the refusal is stored.
		// A refusal after an attempt without an answer proves less. It says that nothing was begun
		// so far. But the lost attempt may still arrive, and succeed if the charge has changed by
		// then, or if another version of the server reads it. Under the same key that does no harm;
		// beside a new key it would be a second payment.
		err = c.cfg.Store.Forget(ctx, op.Name)
	}
	if err != nil {
		return nil, err
	}
	return result[T](a)
}
