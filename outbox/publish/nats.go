// Package publish publishes events to streams that have many readers: NATS JetStream and Kafka.
//
// Both acknowledge an event when it is stored durably, and only then it counts as published.
// JetStream recognises by its id an event that is published again. With Kafka that is up to the
// readers.
package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"paidonce/outbox"
)

const (
	// natsStream and natsSubjects are what is created when no stream has these subjects yet. An
	// operator who wants other limits creates the stream first.
	natsStream   = "PAIDONCE"
	natsSubjects = "paidonce.events"
	// natsDuplicates is how long JetStream recognises an event by its id. An hour is longer than a
	// publisher is away after a crash.
	natsDuplicates = time.Hour
	// natsReconnect is how long the client waits between attempts to connect: the library's own
	// default.
	natsReconnect = 2 * time.Second
)

// NATS publishes to JetStream. Safe for concurrent use.
type NATS struct {
	conn  *nats.Conn
	js    jetstream.JetStream
	ready chan struct{} // holds one token while the stream is not known to exist
}

var _ outbox.Publisher = (*NATS)(nil)

// NewNATS returns a publisher to the server at url. A server that cannot be reached now is
// connected to when it can be. It returns an error for a URL that cannot be used.
func NewNATS(url string) (*NATS, error) {
	conn, err := nats.Connect(url, nats.Name("paidonce"), nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1), nats.ReconnectWait(natsReconnect))
	if err != nil {
		// Err is left out, as it may contain a password.
		return nil, errors.New("PAIDONCE_NATS_URL: cannot be used")
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	n := &NATS{conn: conn, js: js, ready: make(chan struct{}, 1)}
	n.ready <- struct{}{}
	return n, nil
}

// Name implements [outbox.Publisher].
func (n *NATS) Name() string { return "nats" }

// Close closes the connection.
func (n *NATS) Close() { n.conn.Close() }

// Publish implements [outbox.Publisher]. Events are sent in order, each with its id, and all must
// be acknowledged.
func (n *NATS) Publish(ctx context.Context, events []outbox.Event) error {
	if err := n.ensureStream(ctx); err != nil {
		return err
	}
	acks := make([]jetstream.PubAckFuture, 0, len(events))
	for _, e := range events {
		ack, err := n.js.PublishMsgAsync(
			&nats.Msg{Subject: natsSubjects + "." + e.AccountID + "." + e.Type, Data: e.Payload},
			jetstream.WithMsgID(e.ID))
		if err != nil {
			return err
		}
		acks = append(acks, ack)
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return err
		case <-ctx.Done():
			return fmt.Errorf("JetStream has not acknowledged all events: %w", ctx.Err())
		}
	}
	return nil
}

// ensureStream creates the stream unless some stream has its subjects.
func (n *NATS) ensureStream(ctx context.Context) error {
	select {
	case <-n.ready:
	default:
		return nil
	}
	_, err := n.js.StreamNameBySubject(ctx, natsSubjects+".>")
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = n.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: natsStream, Description: "Events of Paidonce",
			Subjects: []string{natsSubjects + ".>"}, Duplicates: natsDuplicates,
		})
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another publisher was faster
			err = nil
		}
	}
	if err != nil {
		n.ready <- struct{}{}
		return fmt.Errorf("JetStream's stream: %w", err)
	}
	return nil
}
