package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	// bodyMax is in bytes. An event has some kilobytes, and about thirty with all the metadata that
	// a charge can have.
	bodyMax = 1 << 20
	// answerWithin is less than the ten seconds after which Paidonce sends the event again: nobody
	// would read a later answer.
	answerWithin = 8 * time.Second
)

// consumer receives events. It is safe for concurrent use, and any number of processes may share a
// database.
type consumer struct {
	db      *pgxpool.Pool
	secrets []*standard.Webhook // any of them may have signed
}

// event has the members of an event that we read.
type event struct {
	ID       string
	Type     string
	Sequence int64 // of the events of one object: a higher one is newer, whatever arrived first
	Data     struct {
		Object struct {
			ID, Object, Status, Currency string
			// minor units, as is the other
			AmountCaptured int64 `json:"amount_captured"`
			AmountRefunded int64 `json:"amount_refunded"`
		}
	}
}

// ServeHTTP receives a delivery. It answers 2xx only after the commit: if anything fails before,
// the event comes again.
func (c *consumer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		http.Error(w, "the body is too long, or did not come whole", http.StatusBadRequest)
		return
	}
	var e event
	// The signature is checked on the bytes as they arrived.
	if !c.signed(body, r.Header) || json.Unmarshal(body, &e) != nil {
		http.Error(w, "no event that one of our secrets has signed", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	var fresh bool
	err = pgx.BeginFunc(ctx, c.db, func(tx pgx.Tx) (err error) {
		fresh, err = take(ctx, tx, e)
		return err
	})
	if err != nil {
		slog.Error("an event is not taken; it comes again", "id", e.ID, "cause", err)
		http.Error(w, "not taken; send it again", http.StatusServiceUnavailable)
		return
	}
	slog.Info(did(fresh, "taken"), "id", e.ID, "type", e.Type, "object", e.Data.Object.ID,
		"sequence", e.Sequence)
}

// did is what the log says of an event. One that comes again has no second effect.
func did(fresh bool, taken string) string {
	if fresh {
		return taken
	}
	return "had already"
}

func (c *consumer) signed(body []byte, header http.Header) bool {
	for _, s := range c.secrets {
		if s.Verify(body, header) == nil {
			return true
		}
	}
	return false
}

// take applies an event, in the transaction that remembers its id. fresh is false if it was applied
// before. If the same event comes twice at once, the second waits at the INSERT until the first has
// committed; it is applied only if the first has failed.
func take(ctx context.Context, tx pgx.Tx, e event) (fresh bool, err error) {
	err = tx.QueryRow(ctx,
		`INSERT INTO books.seen_events (id) VALUES ($1) ON CONFLICT DO NOTHING RETURNING id`,
		e.ID).Scan(&e.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, book(ctx, tx, e)
}

// book is the effect. Yours is another one.
func book(ctx context.Context, tx pgx.Tx, e event) error {
	o := e.Data.Object
	if o.Object != "charge" {
		// This may be a refund, which its charge reports as well, or an event of a later version.
		// It is no failure: otherwise it would come again for three days.
		return nil
	}
	amount := o.AmountCaptured - o.AmountRefunded
	if _, err := tx.Exec(ctx,
		`INSERT INTO books.charges (id, currency) VALUES ($1, $2) ON CONFLICT DO NOTHING`, o.ID,
		o.Currency); err != nil {
		return err
	}
	var was, sequence int64
	if err := tx.QueryRow(ctx,
		`SELECT amount, sequence FROM books.charges WHERE id = $1 FOR UPDATE`, o.ID).Scan(&was,
		&sequence); err != nil {
		return err
	}
	if e.Sequence < sequence {
		amount = was // a newer event of this charge was here first
	} else if _, err := tx.Exec(ctx,
		`UPDATE books.charges SET status = $2, amount = $3, sequence = $4 WHERE id = $1`, o.ID,
		o.Status, amount, e.Sequence); err != nil {
		return err
	}
	_, err := tx.Exec(ctx,
		`INSERT INTO books.ledger (event_id, charge_id, currency, amount) VALUES ($1, $2, $3, $4)`,
		e.ID, o.ID, o.Currency, amount-was)
	return err
}
