package paidonce

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// begin keeps the operation, unless it was begun before; then it must have been the same.
func begin(ctx context.Context, s Store, name, path string, params any) (op Operation, first bool, err error) {
	if name == "" {
		return op, false, errors.New("paidonce: an operation needs a name")
	}
	// encoding/json writes members and map keys in one order, so that the same parameters are the same bytes.
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

// drive sends an operation until there is an answer, and keeps that.
func drive[T any](ctx context.Context, c *Client, op Operation, first bool) (*Result[T], error) {
	if op.Answer != nil { // given again without asking: the server forgets its keys one day
		header := http.Header{"Request-Id": {op.Answer.RequestID}, "Idempotent-Replayed": {"true"}}
		return result[T](answer{status: op.Answer.Status, header: header, body: op.Answer.Body})
	}
	if time.Since(op.Begun) > c.cfg.MaxAge {
		return nil, fmt.Errorf("%w: %s", ErrStale, op.Name)
	}
	object := "charge"
	if op.Path == "/v1/refunds" {
		object = "refund"
	}
	a, err := c.exchange(ctx, outgoing{method: http.MethodPost, address: c.at(op.Path), object: object, body: op.Body, key: op.Key})
	if err != nil {
		return nil, err
	}
	// The answer is known, whatever became of the caller's patience meanwhile.
	ctx = context.WithoutCancel(ctx)
	e := errorOf(a)
	switch {
	case a.success() || e.declined():
		op.Answer = &Answer{Status: a.status, RequestID: a.header.Get("Request-Id"), Body: a.body}
		err = c.cfg.Store.Finish(ctx, op)
	case e.refuses() && (e.Replayed || first && !a.uncertain):
		// The corrected request may have the name, under a new key, as nothing was done under this one, nor will be: its only attempt was refused, or the
		// refusal is stored. A refusal after an attempt without an answer proves less, though the server looks at a key that is taken before it refuses a
		// capture or a refund: it says that nothing was begun so far. The lost attempt may still arrive, and pass when the charge has changed by then, or
		// another version of the server reads it. Under the same key that is no harm, beside a new one it would be the second payment.
		err = c.cfg.Store.Forget(ctx, op.Name)
	}
	if err != nil {
		return nil, err
	}
	return result[T](a)
}
