package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"paidonce/db"
	"paidonce/internal/dbtest"
)

// A database without fsync, like that of the tests, is refused for real money. For test money there
// is only a warning.
func TestLiveKeysNeedADurableDatabase(t *testing.T) {
	url := dbtest.New(t)
	pool, err := db.Open(url, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if db.CheckDurability(t.Context(), pool) == nil {
		t.Skip("the tests' database is durable here: TEST_DATABASE_URL leads to one")
	}
	serveWith := func(key string) error {
		setEnv(t, "DATABASE_URL", url, "STRIPE_API_KEY", key, "PAIDONCE_WORKERS", "none")
		t.Setenv("PAIDONCE_LISTEN", "127.0.0.1:0")
		cfg, err := loadConfig(needDatabase | needProvider)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		return serve(ctx, cfg, slog.New(slog.DiscardHandler), nil, func(string) { cancel() })
	}
	if err := serveWith("sk_live_x"); err == nil || !strings.Contains(err.Error(), "fsync") {
		t.Errorf("live: %v", err)
	}
	if err := serveWith("sk_test_x"); err != nil {
		t.Errorf("test: %v", err)
	}
}
