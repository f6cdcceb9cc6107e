package main

import (
	"strings"
	"testing"
)

// Wrong settings of the mail server are reported with the others, and without the password.
func TestConfigOfMail(t *testing.T) {
	setEnv(t, "PAIDONCE_SMTP_URL", "smtp://shop:hunter2@mail.example.com/inbox",
		"PAIDONCE_SMTP_FROM", "Example Shop", "PAIDONCE_WORKERS", "nobody")
	_, err := loadConfig(0)
	if err == nil {
		t.Fatal("taken")
	}
	for _, name := range []string{"PAIDONCE_SMTP_URL: must end after host and port",
		"PAIDONCE_SMTP_FROM: must be an address", "PAIDONCE_WORKERS"} {
		if !strings.Contains(err.Error(), "\n  "+name) {
			t.Errorf("%s is not told: %v", name, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the password is told: %v", err)
	}
	for _, own := range []bool{true, false} {
		url := ""
		if own {
			url = "smtps://shop%40example.com:hunter2@mail.example.com"
		}
		setEnv(t, "PAIDONCE_SMTP_URL", url, "PAIDONCE_SMTP_FROM", "")
		cfg, err := loadConfig(0)
		if err != nil || cfg.charges("x").OwnReceipts != own {
			t.Errorf("with %q: %v, %+v", url, err, cfg)
		}
	}
}
