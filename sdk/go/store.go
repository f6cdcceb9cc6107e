package paidonce

import (
	"context"
	"encoding/json"
	"time"
)

// Operation is one logical operation: its key, generated once, and the very bytes of its first
// attempt.
type Operation struct {
	Name  string // yours, such as "order-1001/charge"
	Key   string
	Path  string
	Body  []byte
	Begun time.Time
	// Answer is nil until there is a final one.
	Answer *Answer
}

// Answer is the outcome of an operation.
type Answer struct {
	Status    int    `json:"status"`
	RequestID string `json:"requestId"`
	Body      []byte `json:"-"`
}

// Store stores operations. What Begin returns must survive a crash of the program, because the
// first attempt is sent after it.
type Store interface {
	// Begin stores the operation, unless there is one of its name already. It returns the stored
	// one.
	Begin(ctx context.Context, op Operation) (Operation, error)
	// Find returns nil when there is none.
	Find(ctx context.Context, name string) (*Operation, error)
	// Finish replaces the operation of its name.
	Finish(ctx context.Context, op Operation) error
	Forget(ctx context.Context, name string) error
	// Unfinished returns all operations without an answer.
	Unfinished(ctx context.Context) ([]Operation, error)
}

// stored is the form in which operations are written, the same as in the TypeScript SDK.
type stored struct {
	Name   string        `json:"name"`
	Key    string        `json:"key"`
	Method string        `json:"method"`
	Path   string        `json:"path"`
	Body   string        `json:"body"`
	Begun  int64         `json:"begun"` // milliseconds since 1970
	Answer *storedAnswer `json:"answer,omitempty"`
}

type storedAnswer struct {
	Answer
	Body string `json:"body"`
}

func encode(op Operation) ([]byte, error) {
	s := stored{
		Name: op.Name, Key: op.Key, Method: "POST", Path: op.Path, Body: string(op.Body),
		Begun: op.Begun.UnixMilli(),
	}
	if op.Answer != nil {
		s.Answer = &storedAnswer{Answer: *op.Answer, Body: string(op.Answer.Body)}
	}
	return json.Marshal(s)
}

func decode(written []byte) (Operation, error) {
	var s stored
	if err := json.Unmarshal(written, &s); err != nil {
		return Operation{}, err
	}
	op := Operation{
		Name: s.Name, Key: s.Key, Path: s.Path, Body: []byte(s.Body),
		Begun: time.UnixMilli(s.Begun),
	}
	if s.Answer != nil {
		op.Answer = &Answer{
			Status: s.Answer.Status, RequestID: s.Answer.RequestID, Body: []byte(s.Answer.Body),
		}
	}
	return op, nil
}
