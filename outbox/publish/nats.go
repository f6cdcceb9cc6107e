// Package publish publishes events to streams that have many readers: NATS JetStream and Kafka.
//
// Both say when a stream has an event for good, and only then is it counted as published. JetStream recognises an event that is published again, by its id; of Kafka
// the readers do.
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
	// natsStream and natsSubjects are what is made when no stream takes our subjects yet. Whoever wants other limits makes the stream first.
	natsStream   = "PAIDONCE"
	natsSubjects = "paidonce.events"
	// natsDuplicates is how long JetStream recognises an event by its id: longer than a publisher is away after a crash.
	natsDuplicates = time.Hour
	// natsReconnect is how long it rests between attempts to connect.
	natsReconnect = 2 * time.Second
)

// NATS publishes to JetStream. Safe for concurrent use.
type NATS struct {
	conn  *nats.Conn
	js    jetstream.JetStream
	ready chan struct{} // holds one token while the stream is not known to exist
}

var _ outbox.Publisher = (*NATS)(nil)

// NewNATS returns a publisher to the server at url. A server that cannot be reached now is connected to when it can be. Errors: an url that makes no sense.
func NewNATS(url string) (*NATS, error) {
	conn, err := nats.Connect(url, nats.Name("paidonce"), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(natsReconnect))
	if err != nil {
		return nil, errors.New("PAIDONCE_NATS_URL: cannot be used") // without err: it may repeat a password
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

// Publish implements [outbox.Publisher]: in order, each with its id, and all acknowledged.
func (n *NATS) Publish(ctx context.Context, events []outbox.Event) error {
	if err := n.ensureStream(ctx); err != nil {
		return err
	}
	acks := make([]jetstream.PubAckFuture, 0, len(events))
	for _, e := range events {
		ack, err := n.js.PublishMsgAsync(&nats.Msg{Subject: natsSubjects + "." + e.AccountID + "." + e.Type, Data: e.Payload}, jetstream.WithMsgID(e.ID))
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

// ensureStream makes the stream unless some stream takes our subjects.
func (n *NATS) ensureStream(ctx context.Context) error {
	select {
	case <-n.ready:
	default:
		return nil
	}
	_, err := n.js.StreamNameBySubject(ctx, natsSubjects+".>")
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = n.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: natsStream, Description: "Events of Paidonce", Subjects: []string{natsSubjects + ".>"}, Duplicates: natsDuplicates,
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
