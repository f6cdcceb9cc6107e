package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/api"
	"paidonce/api/apitest"
)

// Slow lists take some of the connections, and not all of these are one account's: the rest is for
// what takes a millisecond. What finds no place is told so.
func TestSlowListsLeaveConnections(t *testing.T) {
	s := newShop(t)
	charge := s.Charge("K", b0).ID()
	i := s.ServeWith(func(c *api.Config) { c.Lists = 3 }) // of 12 connections
	a, b := apitest.NewClient(t, i.URL, s.APIKey), apitest.NewClient(t, i.URL, s.B.APIKey)
	conn, err := pgx.Connect(t.Context(), s.World.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE refunds`); err != nil {
		t.Fatal(err)
	}
	waiting := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			var n int
			if err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'refunds'::regclass`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n == want {
				return
			}
			if n > want || time.Now().After(deadline) {
				t.Fatalf("%d lists are read, want %d", n, want)
			}
		}
	}
	const lists = 20
	answers := make(chan apitest.Answer, lists+1)
	for range lists {
		go func() { answers <- a.Get("/v1/refunds") }()
	}
	waiting(2)
	go func() { answers <- b.Get("/v1/refunds") }()
	waiting(3)
	for _, client := range []*apitest.Client{a, b} {
		if got := client.Get("/v1/charges/" + charge); got.Code != http.StatusOK && client == a || got.Code != http.StatusNotFound && client == b {
			t.Errorf("beside slow lists: got %d %s", got.Code, got.Body)
		}
		if got := client.Get("/v1/idempotency_keys/none"); got.Code != http.StatusNotFound {
			t.Errorf("beside slow lists: got %d %s", got.Code, got.Body)
		}
	}
	if got := a.Charge("L", b0); got.Code != http.StatusCreated {
		t.Errorf("beside slow lists: got %d %s", got.Code, got.Body)
	}
	for range lists - 2 {
		got := <-answers
		if e := got.Error(); got.Code != http.StatusServiceUnavailable || e.Code != "unavailable" || got.Header.Get("Retry-After") == "" || got.Header.Get("Stripe-Should-Retry") != "true" {
			t.Errorf("without a place: got %d %s with %v", got.Code, got.Body, got.Header)
		}
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-answers // a page, or that it took too long
	}
	for range 7 { // the places are given back
		if got := a.Get("/v1/refunds"); got.Code != http.StatusOK {
			t.Errorf("after slow lists: got %d %s", got.Code, got.Body)
		}
	}
}
