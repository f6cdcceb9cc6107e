package main

import (
	"strings"
	"testing"
)

func setEnv(t *testing.T, pairs ...string) {
	t.Helper()
	for _, name := range []string{"PAIDONCE_STALE_AFTER", "PAIDONCE_LOOKUP_SPAN", "PAIDONCE_PROVIDER_TIMEOUT", "PAIDONCE_DB_MAX_CONNS", "PAIDONCE_WORKERS", "DATABASE_URL", "STRIPE_API_KEY"} {
		t.Setenv(name, "")
	}
	for i := 0; i < len(pairs); i += 2 {
		t.Setenv(pairs[i], pairs[i+1])
	}
}

// All problems are told at once, each with its name, and no secret is.
func TestConfigTellsAllProblems(t *testing.T) {
	setEnv(t, "DATABASE_URL", "postgres://u:hunter2@[::1/x", "STRIPE_API_KEY", "pk_secret", "PAIDONCE_STALE_AFTER", "1s", "PAIDONCE_DB_MAX_CONNS", "1",
		"PAIDONCE_WORKERS", "relay,nobody", "PAIDONCE_LOOKUP_SPAN", "soon")
	_, err := loadConfig(needDatabase | needProvider)
	if err == nil {
		t.Fatal("taken")
	}
	for _, name := range []string{"DATABASE_URL", "STRIPE_API_KEY", "PAIDONCE_STALE_AFTER", "PAIDONCE_DB_MAX_CONNS", "PAIDONCE_WORKERS", "PAIDONCE_LOOKUP_SPAN"} {
		if !strings.Contains(err.Error(), "\n  "+name) {
			t.Errorf("%s is not told: %v", name, err)
		}
	}
	for _, secret := range []string{"hunter2", "pk_secret"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("a secret is told: %v", err)
		}
	}
}

// Absence is not concluded before everybody who was at work at the first miss has stopped.
func TestLookUpSpanCoversALease(t *testing.T) {
	setEnv(t, "PAIDONCE_STALE_AFTER", "6s", "PAIDONCE_PROVIDER_TIMEOUT", "3s", "PAIDONCE_LOOKUP_SPAN", "1s")
	cfg, err := loadConfig(0)
	if err != nil {
		t.Fatal(err)
	}
	if e := cfg.engine(); e.LookupSpan < e.StaleAfter {
		t.Errorf("span %v, lease %v", e.LookupSpan, e.StaleAfter)
	}
}
