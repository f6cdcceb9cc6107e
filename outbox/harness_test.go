package outbox_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/db"
	"paidonce/internal/dbtest"
	"paidonce/outbox"
)

const account = "acct_1"

// world is a database and a store over it.
type world struct {
	t     testing.TB
	pool  *pgxpool.Pool
	store *outbox.Store
}

func newWorld(t testing.TB) *world {
	t.Helper()
	pool, err := db.Open(dbtest.New(t), 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &world{t: t, pool: pool, store: outbox.New(outbox.Config{Pool: pool})}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(context.Background(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) count(sql string, args ...any) int {
	w.t.Helper()
	var n int
	if err := w.pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// add inserts an event, as a settlement does, and returns its id.
func (w *world) add(on db.DBTX, typ, object string) string {
	w.t.Helper()
	id := db.NewID("evt")
	payload, err := json.Marshal(map[string]any{"id": id, "object": "event", "api_version": "2023-10-16", "type": typ, "data": map[string]any{"object": map[string]string{"id": object}}})
	if err != nil {
		w.t.Fatal(err)
	}
	err = db.New().OutboxAdd(context.Background(), on, db.OutboxAddParams{
		EventID: id, AccountID: account, Type: typ, OperationID: db.NewID("op"), ObjectID: object, Payload: payload,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// addMany inserts many events of one type, each of an object of its own, in one statement.
func (w *world) addMany(n int) {
	w.t.Helper()
	w.exec(`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload)
		SELECT 'evt_' || lpad(i::text, 8, '0'), $1, 'charge.succeeded', 'op_' || i, 'ch_' || i,
			convert_to('{"id":"evt_' || lpad(i::text, 8, '0') || '","object":"event","api_version":"2023-10-16","filler":"' || repeat('x', 700) || '"}', 'UTF8')
		FROM generate_series(1, $2::int) i`, account, n)
}

func (w *world) put(id, url string, types ...string) outbox.Endpoint {
	w.t.Helper()
	if len(types) == 0 {
		types = []string{"*"}
	}
	e, _, err := w.store.PutEndpoint(context.Background(), account, id, outbox.EndpointParams{URL: url, EnabledEvents: types})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// walk reads on from a cursor to the end, in pages of limit, and returns what it saw.
func (w *world) walk(after string, limit int) []string {
	w.t.Helper()
	var ids []string
	for {
		page, err := w.store.List(context.Background(), account, outbox.Filter{StartingAfter: after, Limit: limit})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range page.Events {
			ids = append(ids, e.ID)
			after = e.ID
		}
		if !page.HasMore {
			return ids
		}
	}
}
