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
	// bodyMax is in bytes. An event has some kilobytes; one with all the metadata that a charge can have, about thirty.
	bodyMax = 1 << 20
	// answerWithin is less than the ten seconds after which Paidonce sends the event again: a later answer would be for nobody.
	answerWithin = 8 * time.Second
)

// consumer takes events. Safe for concurrent use; any number of processes may share a database.
type consumer struct {
	db      *pgxpool.Pool
	secrets []*standard.Webhook // any of them may have signed
}

// event is what we read of one.
type event struct {
	ID       string
	Type     string
	Sequence int64 // of the events of one object: a higher one is newer, whatever arrived first
	Data     struct {
		Object struct {
			ID, Object, Status, Currency string
			AmountCaptured               int64 `json:"amount_captured"` // minor units, as is the other
			AmountRefunded               int64 `json:"amount_refunded"`
		}
	}
}

// ServeHTTP takes a delivery. It answers 2xx only after the commit: whatever happens before, the event comes again.
func (c *consumer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		http.Error(w, "the body is too long, or did not come whole", http.StatusBadRequest)
		return
	}
	var e event
	if !c.signed(body, r.Header) || json.Unmarshal(body, &e) != nil { // on the bytes as they came, before anything is made of them
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
	slog.Info(did(fresh, "taken"), "id", e.ID, "type", e.Type, "object", e.Data.Object.ID, "sequence", e.Sequence)
}

// did is what the log says of an event: one that comes again has no second effect.
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

// take gives an event its effect, in the transaction that remembers its id; fresh is false for one that has had it. If the same event comes twice at once, the second waits at the INSERT until the first
// has committed, or takes its place if that failed.
func take(ctx context.Context, tx pgx.Tx, e event) (fresh bool, err error) {
	err = tx.QueryRow(ctx, `INSERT INTO books.seen_events (id) VALUES ($1) ON CONFLICT DO NOTHING RETURNING id`, e.ID).Scan(&e.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, book(ctx, tx, e)
}

// book is the effect: yours is something else.
func book(ctx context.Context, tx pgx.Tx, e event) error {
	o := e.Data.Object
	if o.Object != "charge" {
		return nil // a refund, which its charge tells as well, or something of later days: no failure, or it would come again for three days
	}
	amount := o.AmountCaptured - o.AmountRefunded
	if _, err := tx.Exec(ctx, `INSERT INTO books.charges (id, currency) VALUES ($1, $2) ON CONFLICT DO NOTHING`, o.ID, o.Currency); err != nil {
		return err
	}
	var was, sequence int64
	if err := tx.QueryRow(ctx, `SELECT amount, sequence FROM books.charges WHERE id = $1 FOR UPDATE`, o.ID).Scan(&was, &sequence); err != nil {
		return err
	}
	if e.Sequence < sequence {
		amount = was // a newer event of this charge was here first
	} else if _, err := tx.Exec(ctx, `UPDATE books.charges SET status = $2, amount = $3, sequence = $4 WHERE id = $1`, o.ID, o.Status, amount, e.Sequence); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO books.ledger (event_id, charge_id, currency, amount) VALUES ($1, $2, $3, $4)`, e.ID, o.ID, o.Currency, amount-was)
	return err
}
