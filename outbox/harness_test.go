package outbox_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"testing"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/internal/dbtest"
	"paidonce/outbox"
)

const account = "acct_1"

// world is a database and a store over it.
type world struct {
	*dbtest.Database
	store *outbox.Store
}

func newWorld(t testing.TB) *world {
	t.Helper()
	d := dbtest.Open(t, 16)
	keys := idemkeys.NewEngine(d.Pool, idemkeys.Config{}, quiet, nil)
	return &world{Database: d, store: outbox.New(outbox.Config{Pool: d.Pool, Runner: keys.Runner})}
}

// rotate gives an endpoint a new secret, without a key.
func (w *world) rotate(id string) (e outbox.Endpoint, err error) {
	w.T.Helper()
	res, err := w.store.RotateSecret(context.Background(), idemkeys.Request{AccountID: account}, id)
	if err == nil {
		err = json.Unmarshal(res.Answer.Body, &e)
	}
	return e, err
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// add inserts an event, as a settlement does, and returns its id.
func (w *world) add(on db.DBTX, typ, object string) string {
	w.T.Helper()
	id := db.NewID("evt")
	payload, err := json.Marshal(map[string]any{"id": id, "object": "event", "api_version": "2023-10-16", "type": typ, "data": map[string]any{"object": map[string]string{"id": object}}})
	if err != nil {
		w.T.Fatal(err)
	}
	err = db.New().OutboxAdd(context.Background(), on, db.OutboxAddParams{
		EventID: id, AccountID: account, Type: typ, OperationID: db.NewID("op"), ObjectID: object, Payload: payload,
	})
	if err != nil {
		w.T.Fatal(err)
	}
	return id
}

// addMany inserts many events of one type, each of an object of its own, in one statement.
func (w *world) addMany(n int) {
	w.T.Helper()
	w.Exec(`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload)
		SELECT 'evt_' || lpad(i::text, 8, '0'), $1, 'charge.succeeded', 'op_' || i, 'ch_' || i,
			convert_to('{"id":"evt_' || lpad(i::text, 8, '0') || '","object":"event","api_version":"2023-10-16","filler":"' || repeat('x', 700) || '"}', 'UTF8')
		FROM generate_series(1, $2::int) i`, account, n)
}

func (w *world) put(id, url string, types ...string) outbox.Endpoint {
	w.T.Helper()
	if len(types) == 0 {
		types = []string{"*"}
	}
	e, _, err := w.store.PutEndpoint(context.Background(), account, id, outbox.EndpointParams{URL: url, EnabledEvents: types})
	if err != nil {
		w.T.Fatal(err)
	}
	return e
}

// walk reads on from a cursor to the end, in pages of limit, and returns what it saw.
func (w *world) walk(after string, limit int) []string {
	w.T.Helper()
	var ids []string
	for {
		page, err := w.store.List(context.Background(), account, outbox.Filter{StartingAfter: after, Limit: limit})
		if err != nil {
			w.T.Fatal(err)
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
