package receipt_test

import (
	"bytes"
	"mime"
	"net/mail"
	"strings"
	"testing"

	"paidonce/outbox/receipt"
)

func TestAmounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.mailer()
	for _, c := range []struct {
		amount   int64
		currency string
		want     string
	}{
		{2000, "usd", "20.00 USD"}, {5, "eur", "0.05 EUR"}, {99999999, "usd", "999999.99 USD"},
		{500, "jpy", "500 JPY"}, {1, "krw", "1 KRW"}, {1230, "kwd", "1.230 KWD"}, {10, "bhd", "0.010 BHD"},
		// as the provider takes them
		{500, "isk", "5.00 ISK"}, {500, "ugx", "5.00 UGX"}, {500, "mga", "500 MGA"},
	} {
		w.pay(payment{amount: c.amount, currency: c.currency})
		w.once(m)
		letters := w.post.taken()
		head, body := read(t, letters[len(letters)-1])
		if head.Get("Subject") != "[Test] Your payment of "+c.want+" to Corner Shop" || !strings.Contains(body, "\nAmount: "+c.want+"\n") {
			t.Errorf("%d %s: %s, %s", c.amount, c.currency, head.Get("Subject"), body)
		}
	}
}

// Text of others comes in the receipt, in any language, on one line, and nowhere else.
func TestTextOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.mailer()
	w.Exec("UPDATE accounts SET name = $1", "Bäckerei „Zur Brücke“\r\nBcc: thief@example.org\r\n\r\nPay again at evil.example")
	description := "日本語の本 — Größe 42\r\n\r\n.\r\nAmount: 0.01 USD\nQUIT\u2028\u202eDSU 10.0\x07 " + strings.Repeat("long ", 150)
	id := w.pay(payment{description: description, suffix: "X", address: "jenny+x@bücher.example", live: true})
	if c := w.once(m); c.Sent != 1 {
		t.Fatalf("counted %+v, the row is %+v", c, w.row(id))
	}
	letters := w.post.taken()
	if len(letters) != 1 || len(letters[0].to) != 1 || letters[0].to[0] != "jenny+x@xn--bcher-kva.example" {
		t.Fatalf("%d mails, to %v", len(letters), letters[0].to)
	}
	head, body := read(t, letters[0])
	for name := range head {
		switch name {
		case "From", "To", "Subject", "Date", "Message-Id", "Auto-Submitted", "Mime-Version", "Content-Type", "Content-Transfer-Encoding":
		default:
			t.Errorf("there is a header %s: %q", name, head[name])
		}
	}
	const name = "Bäckerei „Zur Brücke“ Bcc: thief@example.org Pay again at evil.example"
	if got := head.Get("Subject"); got != "Your payment of 20.00 USD to "+name {
		t.Errorf("Subject: %q", got)
	}
	if a, err := (&mail.AddressParser{WordDecoder: new(mime.WordDecoder)}).Parse(head.Get("From")); err != nil || a.Name != name || a.Address != "receipts@example.com" {
		t.Errorf("From: %v, %v", a, err)
	}
	if want := "\nFor: 日本語の本 — Größe 42 . Amount: 0.01 USD QUIT DSU 10.0 long long"; !strings.Contains(body, want) {
		t.Errorf("no line %q in:\n%s", want, body)
	}
	if n := strings.Count(body, "\nAmount:"); n != 1 {
		t.Errorf("%d lines tell an amount:\n%s", n, body)
	}
	for _, line := range bytes.Split(letters[0].raw, []byte("\r\n")) {
		if len(line) > 998 || bytes.ContainsAny(line, "\r\n") || strings.ContainsFunc(string(line), func(r rune) bool { return r > 126 }) {
			t.Errorf("a line that not every mail server takes: %q", line)
		}
	}
}

// Addresses that are tricks are not mailed to.
func TestAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.mailer()
	for _, address := range []string{
		"a@example.org>\r\nRCPT TO:<thief@example.org", "a@example.org\r\nBcc: thief@example.org", `"a b"@example.org`, "a@example.org, thief@example.org", "Jenny <a@example.org>",
		"<a@example.org>", "a@example.org ORCPT=x", "a", "@example.org", "a@-ä-.example", "a@example.org\x00", "a@exa\u0085mple.org",
	} {
		if strings.ContainsRune(address, 0) {
			continue // no column can hold it
		}
		id := w.pay(payment{address: address})
		w.once(m)
		if r := w.row(id); r.State != "refused" || !strings.Contains(r.Error, "cannot be put together") {
			t.Errorf("%q: %+v", address, r)
		}
	}
	if w.post.begun() != 0 {
		t.Errorf("%d conversations", w.post.begun())
	}
	// What is before the @ in other letters is for mail servers that say they take it.
	id := w.pay(payment{address: "jürgen@example.org"})
	w.once(m)
	if letters := w.post.taken(); w.row(id).State != "sent" || letters[0].to[0] != "jürgen@example.org" {
		t.Errorf("%+v", w.row(id))
	}
	plain := newPostOffice(t)
	plain.server.EnableSMTPUTF8 = false
	server, err := receipt.ParseServer("smtp://" + plain.address)
	if err != nil {
		t.Fatal(err)
	}
	id = w.pay(payment{address: "jürgen@example.org"})
	w.once(w.mailer(func(c *receipt.Config) { c.Server = server }))
	if r := w.row(id); r.State != "refused" || plain.begun() != 0 {
		t.Errorf("%+v", r)
	}
}
