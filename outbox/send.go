package outbox

import (
	"context"
	"time"
)

// Message is one event on its way to one endpoint.
type Message struct {
	URL     string
	Secrets []string // all that are active, the newest first
	EventID string
	Payload []byte // sent as it is
}

// Answer is what an endpoint answered.
type Answer struct {
	Status int
	Body   []byte // its beginning, at most 8 KiB
	// How long to wait before the next attempt; 0: the endpoint did not say.
	RetryAfter time.Duration
}

// Sender makes one attempt to deliver a message, within a time limit of its own. An error means
// that there was no answer. It is safe for concurrent use.
type Sender interface {
	Send(ctx context.Context, m Message) (Answer, error)
}
