package outbox_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/outbox"
	"paidonce/problem"
)

// TestPutEndpoint: registering again changes nothing but what is given; the secret stays.
func TestPutEndpoint(t *testing.T) {
	w := newWorld(t)
	p := outbox.EndpointParams{URL: "https://receiver.test/", EnabledEvents: []string{"refund.created", "charge.failed", "charge.failed"}, Description: "one"}
	first, created, err := w.store.PutEndpoint(t.Context(), account, "hook", p)
	if err != nil || !created {
		t.Fatal(created, err)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(first.Secret, "whsec_"))
	if err != nil || len(raw) < 24 || fmt.Sprint(first.EnabledEvents) != "[charge.failed refund.created]" {
		t.Errorf("%+v, %v", first, err)
	}
	p.Description, p.EnabledEvents = "two", []string{"*", "charge.failed"}
	second, created, err := w.store.PutEndpoint(t.Context(), account, "hook", p)
	if err != nil || created || second.Secret != first.Secret || *second.Description != "two" || fmt.Sprint(second.EnabledEvents) != "[*]" {
		t.Errorf("%+v, %t, %v", second, created, err)
	}
	if _, created, err = w.store.PutEndpoint(t.Context(), "acct_2", "hook", p); err != nil || !created {
		t.Errorf("another account's: %t, %v", created, err)
	}
	if list, err := w.store.ListEndpoints(t.Context(), account); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v, want 1", list, err)
	}
	if _, err := w.store.GetEndpoint(t.Context(), account, "other"); !errors.Is(err, outbox.ErrNotFound) {
		t.Error(err)
	}
	if err := w.store.DeleteEndpoint(t.Context(), account, "hook"); err != nil {
		t.Error(err)
	}
	if err := w.store.DeleteEndpoint(t.Context(), account, "hook"); !errors.Is(err, outbox.ErrNotFound) {
		t.Error(err)
	}
	if _, err := w.rotate("hook"); !errors.Is(err, outbox.ErrNotFound) {
		t.Error(err)
	}
}

func TestEndpointParams(t *testing.T) {
	w := newWorld(t)
	good := outbox.EndpointParams{URL: "https://receiver.test/", EnabledEvents: []string{"*"}}
	for param, c := range map[string]struct {
		id     string
		change func(*outbox.EndpointParams)
	}{
		"id":             {"a/b", func(*outbox.EndpointParams) {}},
		"url":            {"a", func(p *outbox.EndpointParams) { p.URL = "" }},
		"enabled_events": {"a", func(p *outbox.EndpointParams) { p.EnabledEvents = []string{"charge.exploded"} }},
		"description":    {"a", func(p *outbox.EndpointParams) { p.Description = strings.Repeat("ä", 501) }},
	} {
		p := good
		c.change(&p)
		var wrong *problem.Error
		if _, _, err := w.store.PutEndpoint(t.Context(), account, c.id, p); !errors.As(err, &wrong) || wrong.Param != param || wrong.Name() == "" {
			t.Errorf("%s: %v", param, err)
		}
	}
	w.Exec(`INSERT INTO webhook_endpoints (account_id, id, url, enabled_events) SELECT $1, 'e' || i, 'http://x.test/', '{*}' FROM generate_series(1, 50) i`, account)
	var wrong *problem.Error
	if _, _, err := w.store.PutEndpoint(t.Context(), account, "one-more", good); !errors.As(err, &wrong) {
		t.Errorf("one more than the most: %v", err)
	}
}

// TestDeleteWhileNumbering: nothing is queued for what is deleted, and nothing fails, however they
// meet. Registering at once by many makes one endpoint.
func TestDeleteWhileNumbering(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	for range 20 {
		var group sync.WaitGroup
		made := make([]bool, 4)
		for i := range made {
			group.Go(func() {
				_, created, err := w.store.PutEndpoint(ctx, account, "hook", outbox.EndpointParams{URL: "http://receiver.test/", EnabledEvents: []string{"*"}})
				if made[i] = created; err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if fmt.Sprint(made) == fmt.Sprint(make([]bool, 4)) || strings.Count(fmt.Sprint(made), "true") != 1 {
			t.Errorf("created: %v", made)
		}
		for range 5 {
			w.add(w.Pool, "charge.succeeded", "ch_1")
		}
		group.Go(func() {
			if _, err := w.store.Number(ctx); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			if err := w.store.DeleteEndpoint(ctx, account, "hook"); err != nil {
				t.Error(err)
			}
		})
		group.Wait()
	}
	// what was queued at the very moment of a deletion
	if _, err := w.store.Clean(ctx, time.Hour); err != nil {
		t.Error(err)
	}
	if n := w.Count(`SELECT count(*) FROM deliveries`); n != 0 {
		t.Errorf("%d deliveries to nowhere", n)
	}
	if n := w.Count(`SELECT count(*) FROM webhook_secrets`); n != 0 {
		t.Errorf("%d secrets of nobody", n)
	}
}

// TestEndpointsAtOnce: many who register at the same moment do not get past what an account can
// have.
func TestEndpointsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.Exec(`INSERT INTO accounts (id, name) VALUES ($1, 'shop')`, account)
	const most, room, callers = 50, 2, 20
	for i := range most - room {
		w.put(fmt.Sprintf("old-%d", i), "https://receiver.test/")
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	made, refused := 0, 0
	for i := range callers {
		group.Go(func() {
			_, created, err := w.store.PutEndpoint(t.Context(), account, fmt.Sprintf("new-%d", i), outbox.EndpointParams{URL: "https://receiver.test/", EnabledEvents: []string{"*"}})
			mu.Lock()
			defer mu.Unlock()
			var invalid *problem.Error
			switch {
			case created && err == nil:
				made++
			case errors.As(err, &invalid) && invalid.Code == problem.TooManyEndpoints:
				refused++
			default:
				t.Error(created, err)
			}
		})
	}
	group.Wait()
	if made != room || refused != callers-room {
		t.Errorf("%d were registered and %d refused, where %d had room", made, refused, room)
	}
}

// TestPutWhileDeleting: whoever registers hears what came of it, also when somebody else deletes
// the endpoint the moment after.
func TestPutWhileDeleting(t *testing.T) {
	w := newWorld(t)
	store := outbox.New(outbox.Config{Pool: deleting{w.Pool}})
	e, created, err := store.PutEndpoint(t.Context(), account, "hook", outbox.EndpointParams{URL: "https://receiver.test/", EnabledEvents: []string{"*"}})
	if err != nil || !created || e.ID != "hook" || e.Secret == "" {
		t.Errorf("%+v, %t, %v", e, created, err)
	}
}

// deleting deletes all endpoints whenever something is read outside of a transaction.
type deleting struct{ *pgxpool.Pool }

func (p deleting) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	_, _ = p.Exec(ctx, `DELETE FROM webhook_endpoints`)
	return p.Pool.QueryRow(ctx, sql, args...)
}
