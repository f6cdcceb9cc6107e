package paidonce

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// begin keeps the operation, unless it was begun before; then it must have been the same.
func begin(ctx context.Context, s Store, name, path string, params any) (op Operation, first bool, err error) {
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
	a, err := c.exchange(ctx, http.MethodPost, c.at()+op.Path, op.Body, op.Key)
	if err != nil {
		return nil, err
	}
	// The answer is known, whatever became of the caller's patience meanwhile.
	ctx = context.WithoutCancel(ctx)
	switch {
	case a.status < http.StatusMultipleChoices || a.status == http.StatusPaymentRequired:
		op.Answer = &Answer{Status: a.status, RequestID: a.header.Get("Request-Id"), Body: a.body}
		err = c.cfg.Store.Finish(ctx, op)
	case first && !a.uncertain && slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}, a.status):
		// Refused at the first attempt, so nothing moved, and the corrected request may have the name. After an attempt without an
		// answer a refusal proves nothing about that attempt, and the key is kept.
		err = c.cfg.Store.Forget(ctx, op.Name)
	}
	if err != nil {
		return nil, err
	}
	return result[T](a)
}
