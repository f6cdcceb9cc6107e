package receipt_test

import (
	"fmt"
	"strings"
	"testing"

	"paidonce/outbox/receipt"
)

func TestParseServer(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{ // where, and whom mails are from when nobody says
		"smtp://mail.example.com":                                   "mail.example.com:587 receipts@mail.example.com",
		"smtps://mail.example.com/":                                 "mail.example.com:465 receipts@mail.example.com",
		"smtp://localhost:25":                                       "localhost:25 receipts@localhost",
		"smtp://[::1]:2525":                                         "[::1]:2525 receipts@localhost",
		"smtp://127.0.0.1:2525":                                     "127.0.0.1:2525 receipts@localhost",
		"smtp://shop:hunter2@mail.example.com":                      "mail.example.com:587 receipts@mail.example.com",
		"smtps://shop%40example.com:hunter2%40%2F@mail.example.com": "mail.example.com:465 shop@example.com",
	} {
		s, err := receipt.ParseServer(raw)
		if got := fmt.Sprint(s, " ", s.Sender().Address); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", raw, got, err, want)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if strings.Contains(fmt.Sprintf(verb, s), "hunter2") {
				t.Errorf("%s of %s tells the password", verb, raw)
			}
		}
	}
	for _, raw := range []string{
		"mail.example.com:25", "http://mail.example.com", "smtp://", "smtp://:25", "smtp://shop@mail.example.com", "smtp://:hunter2@mail.example.com", "smtp://shop:@mail.example.com",
		"smtp://mail.example.com:0", "smtp://mail.example.com:70000", "smtp://mail.example.com:smtp", "smtp://mail.example.com/inbox", "smtp://mail.example.com?tls=no",
		"smtp://mail.example.com#x", "smtp://shop:hunter2@mail example.com", "smtp://shop:hunter2@mail.example.com:x", "smtp://shop:hunter2%@mail.example.com", "smtp://mail\r\nX.example.com",
		"smtp://mail%0d%0aX.example.com",
	} {
		s, err := receipt.ParseServer(raw)
		if err == nil {
			t.Errorf("%q is taken as %s", raw, s)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error tells the password: %v", raw, err)
		}
	}
}

func TestParseSender(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"receipts@example.com":                "<receipts@example.com>",
		"Example Shop <receipts@example.com>": `"Example Shop" <receipts@example.com>`,
		"Bäckerei <kasse@bäcker.example>":     "=?utf-8?q?B=C3=A4ckerei?= <kasse@xn--bcker-gra.example>",
		`"Shop, Inc." <receipts@example.com>`: `"Shop, Inc." <receipts@example.com>`,
	} {
		if a, err := receipt.ParseSender(raw); err != nil || a.String() != want {
			t.Errorf("%s: %v, %v; want %s", raw, a, err, want)
		}
	}
	for _, raw := range []string{
		"", "example.com", "a@b@example.com", "a@example.com, b@example.com", "kässe@example.com", "=?utf-8?q?a=0D=0ABcc:x?= <receipts@example.com>", `"a b"@example.com`, "<@example.com>",
		"a@example.com\r\nBcc: b@example.com", "a@-ä-.example",
	} {
		if a, err := receipt.ParseSender(raw); err == nil {
			t.Errorf("%q is taken as %s", raw, a)
		}
	}
}
