package main

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// said returns the warnings that a configuration gives, alone and for a server.
func said(t *testing.T, pairs ...string) string {
	t.Helper()
	for _, name := range settings() {
		t.Setenv(name, "")
	}
	setEnv(t, pairs...)
	cfg, err := loadConfig(0)
	if err != nil {
		t.Fatalf("%v: %v", pairs, err)
	}
	var b strings.Builder
	log := slog.New(slog.NewTextHandler(&b, nil))
	cfg.warn(log)
	cfg.warnServing(log)
	return b.String()
}

// Settings for development are refused with a key that moves real money, and with no other.
func TestLiveKeysRefuseDevelopment(t *testing.T) {
	for _, c := range []struct {
		name, value string
		refused     bool
	}{
		{"STRIPE_API_BASE", "http://api.stripe.com", true},
		{"STRIPE_API_BASE", "HTTP://127.0.0.1:12111", true},
		{"STRIPE_API_BASE", "https://127.0.0.1:12112", false},
		{"PAIDONCE_WEBHOOK_ALLOW_PRIVATE", "true", true},
		{"PAIDONCE_WEBHOOK_ALLOW_PRIVATE", "1", true},
		{"PAIDONCE_WEBHOOK_ALLOW_PRIVATE", "false", false},
	} {
		for _, key := range []string{"sk_live_hush", "rk_live_hush", "sk_test_hush",
			"sk_test_live_hush"} {
			setEnv(t, "STRIPE_API_KEY", key, "STRIPE_API_BASE", "",
				"PAIDONCE_WEBHOOK_ALLOW_PRIVATE", "", c.name, c.value)
			_, err := loadConfig(0)
			if refused := err != nil && strings.Contains(err.Error(), "\n  "+c.name+": "); refused != (c.refused && strings.Contains(key, "k_live_")) {
				t.Errorf("%s, %s=%s: %v", key, c.name, c.value, err)
			}
			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("the key is told: %v", err)
			}
		}
	}
}

func TestRiskySettingsAreTold(t *testing.T) {
	safe := []string{"STRIPE_WEBHOOK_SECRET", "whsec_x"}
	for _, c := range []struct {
		set  []string
		want string // empty: no warning
	}{
		{nil, ""},
		{[]string{"PAIDONCE_KEY_TTL", "23h"}, "PAIDONCE_KEY_TTL"},
		{[]string{"PAIDONCE_KEY_TTL", "24h"}, ""},
		{[]string{"PAIDONCE_CORS_ORIGINS", "*"}, "PAIDONCE_CORS_ORIGINS"},
		{[]string{"PAIDONCE_CORS_ORIGINS", "https://shop.example.com"}, ""},
		{[]string{"PAIDONCE_LISTEN", "93.184.215.14:443"}, "PAIDONCE_LISTEN"},
		{[]string{"PAIDONCE_LISTEN", "[2606:4700::1]:443"}, "PAIDONCE_LISTEN"},
		{[]string{"PAIDONCE_LISTEN", "10.0.0.1:8080"}, ""},
		{[]string{"PAIDONCE_LISTEN", ":8080"}, ""},
		{[]string{"STRIPE_WEBHOOK_SECRET", "", "PAIDONCE_WORKERS", "relay"},
			"STRIPE_WEBHOOK_SECRET"},
	} {
		pairs := append(slices.Clone(safe), c.set...)
		live := said(t, append(pairs, "STRIPE_API_KEY", "sk_live_hush")...)
		if n := strings.Count(live, "level=WARN"); c.want == "" && n > 0 || c.want != "" &&
			(n != 1 || !strings.Contains(live, c.want)) {
			t.Errorf("%v: want %q, told is %s", c.set, c.want, live)
		}
		if test := said(t, append(pairs, "STRIPE_API_KEY", "sk_test_hush")...); test != "" {
			t.Errorf("%v, with test money: %s", c.set, test)
		}
	}
}

// A worker without work gives a warning, with test keys and with live ones.
func TestInboxWithoutASecretIsTold(t *testing.T) {
	for _, key := range []string{"sk_live_x", "sk_test_x"} {
		if got := said(t, "STRIPE_API_KEY", key, "PAIDONCE_WORKERS", "inbox,sweep"); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "PAIDONCE_WORKERS has inbox") {
			t.Errorf("%s: %s", key, got)
		}
		if got := said(t, "STRIPE_API_KEY", key, "PAIDONCE_WORKERS", "inbox",
			"STRIPE_WEBHOOK_SECRET", "whsec_x"); got != "" {
			t.Errorf("%s: %s", key, got)
		}
	}
}

func TestMisspeltNamesOfStripe(t *testing.T) {
	for name, meant := range map[string]string{
		"STRIPE_APIKEY": "STRIPE_API_KEY", "STRIPE_API_KEYS": "STRIPE_API_KEY",
		"STRIPE_WEBHOOKS_SECRET": "STRIPE_WEBHOOK_SECRET",
		"STRIPE_WEBHOOK_SECRETS": "STRIPE_WEBHOOK_SECRET",
		"STRIPE_API_BASE_":       "STRIPE_API_BASE", "STRIPE_FLOWS": "STRIPE_FLOW",
		"PAIDONCE_PROVIDER_PROXI": "PAIDONCE_PROVIDER_PROXY",
		// Values that belong to other programs.
		"STRIPE_PUBLISHABLE_KEY": "", "STRIPE_SECRET_KEY": "", "STRIPE_ACCOUNT": "",
		"STRIPE_CLI_TELEMETRY_OPTOUT": "", "STRIPE_DEVICE_NAME": "", "STRIPE_PORT": "",
		"STRIPE_SERVICE_HOST": "", "STRIPED": "",
	} {
		t.Run(name, func(t *testing.T) {
			got := said(t, "STRIPE_WEBHOOK_SECRET", "whsec_x", name, "hush")
			if meant == "" && got != "" || meant != "" &&
				(strings.Count(got, "level=WARN") != 1 ||
					!strings.Contains(got, "name="+name+" ") || !strings.Contains(got,
					"is "+meant+" meant?")) || strings.Contains(got, "hush") {
				t.Error(got)
			}
		})
	}
}

func TestProxySetting(t *testing.T) {
	for value, right := range map[string]bool{"": true, "http://u:hush@proxy:3128": true,
		"socks5://u:hush@proxy": true, "https://proxy": true, "u:hush@proxy:3128": false,
		"ftp://u:hush@proxy": false} {
		setEnv(t, "PAIDONCE_PROVIDER_PROXY", value)
		_, err := loadConfig(0)
		if (err == nil) != right || err != nil && (!strings.Contains(err.Error(),
			"\n  PAIDONCE_PROVIDER_PROXY: must be") || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%q: %v", value, err)
		}
	}
}
