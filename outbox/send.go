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
	Status     int
	Body       []byte        // its beginning, at most 8 KiB
	RetryAfter time.Duration // not before; 0: nothing was said
}

// Sender makes one attempt to deliver a message, within its own limit of time. An error means that there was no answer. Safe for concurrent use.
type Sender interface {
	Send(ctx context.Context, m Message) (Answer, error)
}
