package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

func setEnv(t *testing.T, pairs ...string) {
	t.Helper()
	for _, name := range []string{"PAIDONCE_STALE_AFTER", "PAIDONCE_LOOKUP_SPAN",
		"PAIDONCE_PROVIDER_TIMEOUT", "PAIDONCE_DB_MAX_CONNS", "PAIDONCE_WORKERS", "DATABASE_URL",
		"STRIPE_API_KEY"} {
		t.Setenv(name, "")
	}
	for i := 0; i < len(pairs); i += 2 {
		t.Setenv(pairs[i], pairs[i+1])
	}
}

// All problems are reported at once, each with the setting's name and none with a secret.
func TestConfigTellsAllProblems(t *testing.T) {
	setEnv(t, "DATABASE_URL", "postgres://u:hunter2@[::1/x", "STRIPE_API_KEY", "pk_secret",
		"PAIDONCE_STALE_AFTER", "1s", "PAIDONCE_DB_MAX_CONNS", "1",
		"PAIDONCE_WORKERS", "relay,nobody", "PAIDONCE_LOOKUP_SPAN", "soon")
	_, err := loadConfig(needDatabase | needProvider)
	if err == nil {
		t.Fatal("taken")
	}
	for _, name := range []string{"DATABASE_URL", "STRIPE_API_KEY", "PAIDONCE_STALE_AFTER",
		"PAIDONCE_DB_MAX_CONNS", "PAIDONCE_WORKERS", "PAIDONCE_LOOKUP_SPAN"} {
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

// A value that cannot be read is reported once, together with what else is wrong.
func TestConfigTellsEachProblemOnce(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want []string
	}{
		{[]string{"PAIDONCE_PROVIDER_TIMEOUT", "20", "PAIDONCE_STALE_AFTER", "5s"},
			[]string{"PAIDONCE_PROVIDER_TIMEOUT: must be a duration, such as 20s",
				"PAIDONCE_STALE_AFTER: "}},
		{[]string{"PAIDONCE_STALE_AFTER", "soon"},
			[]string{"PAIDONCE_STALE_AFTER: must be a duration, such as 90s"}},
		{[]string{"PAIDONCE_NATS_URL", "foo", "PAIDONCE_KAFKA_BROKERS", "kafka:9092,foo"},
			[]string{"PAIDONCE_NATS_URL: ", "PAIDONCE_KAFKA_BROKERS: "}},
		{[]string{"PAIDONCE_NATS_URL", "nats://nats:70000", "PAIDONCE_KAFKA_BROKERS",
			"kafka:broker"}, []string{"PAIDONCE_NATS_URL: ", "PAIDONCE_KAFKA_BROKERS: "}},
		{[]string{"PAIDONCE_NATS_URL", "http://hush:hush@nats:4222", "PAIDONCE_KAFKA_BROKERS",
			"kafka:0"}, []string{"PAIDONCE_NATS_URL: ", "PAIDONCE_KAFKA_BROKERS: "}},
		{[]string{"PAIDONCE_NATS_URL", "nats://u:p@nats:4222, tls://other, nats:4222",
			"PAIDONCE_KAFKA_BROKERS", "kafka:9092, [::1]:9092"}, nil},
	} {
		setEnv(t,
			append([]string{"PAIDONCE_NATS_URL", "", "PAIDONCE_KAFKA_BROKERS", ""}, c.set...)...)
		_, err := loadConfig(0)
		if c.want == nil {
			if err != nil {
				t.Errorf("%v: %v", c.set, err)
			}
			continue
		}
		if err == nil || strings.Count(err.Error(), "\n") != len(c.want) ||
			strings.Contains(err.Error(), "hush") {
			t.Errorf("%v: got %v, want one line for each fault, without secrets", c.set, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), "\n  "+want) {
				t.Errorf("%v: %q is not told: %v", c.set, want, err)
			}
		}
	}
}

// A misspelt setting is reported with the name that is meant, and without its value. Settings of
// other programs are left alone.
func TestUnknownSettings(t *testing.T) {
	setEnv(t, "STRIPE_WEBHOOK_SECRET", "whsec_hush,hush", "PAIDONCE_RATELIMIT", "hush",
		"PAIDONCE_WORKER", "relay", "PAIDONCE_WEATHER", "fine", "PAIDONCE_EMPTY", "",
		"PAIDONCE_URL", "http://x", "PAIDONCE_API_KEY", "sk_hush", "PAIDONCE_HA", "1",
		"PAIDONCE_SERVICE_HOST", "10.0.0.1", "PAIDONCE_PORT", "tcp://10.0.0.1:80",
		"PAIDONCE_PORT_80_TCP_ADDR", "10.0.0.1")
	cfg, err := loadConfig(0)
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cfg.warn(slog.New(slog.NewTextHandler(&said, nil)))
	for _, want := range []string{"name=PAIDONCE_RATELIMIT", "is PAIDONCE_RATE_LIMIT meant?",
		"name=PAIDONCE_WORKER ", "is PAIDONCE_WORKERS meant?", "name=PAIDONCE_WEATHER",
		"begin with whsec_"} {
		if strings.Count(said.String(), want) != 1 {
			t.Errorf("not told once: %q\n%s", want, said.String())
		}
	}
	if strings.Count(said.String(), "level=WARN") != 4 || strings.Contains(said.String(), "hush") {
		t.Error(said.String())
	}
}

// Durations are readable, in JSON too.
func TestLoggedDurations(t *testing.T) {
	var said strings.Builder
	slog.New(slog.NewJSONHandler(&said, &slog.HandlerOptions{ReplaceAttr: readableDuration})).Info(
		"x", "in", 1500*time.Millisecond)
	if !strings.Contains(said.String(), `"in":"1.5s"`) {
		t.Error(said.String())
	}
}

// An operation is not declared absent before everybody who worked at the first miss has stopped.
func TestLookUpSpanCoversALease(t *testing.T) {
	setEnv(t, "PAIDONCE_STALE_AFTER", "6s", "PAIDONCE_PROVIDER_TIMEOUT", "3s",
		"PAIDONCE_LOOKUP_SPAN", "1s")
	cfg, err := loadConfig(0)
	if err != nil {
		t.Fatal(err)
	}
	if e := cfg.engine(); e.LookupSpan < e.StaleAfter {
		t.Errorf("span %v, lease %v", e.LookupSpan, e.StaleAfter)
	}
}
