package receipt_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"paidonce/db"
	"paidonce/outbox/receipt"
)

// TestMailArrivesOnce: with all that a receipt has to say, and never again. That it is being sent
// is committed before the mail server hears of it.
func TestMailArrivesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.mailer()
	w.post.onHello = func() {
		if n := w.Count("SELECT count(*) FROM receipts WHERE state = 'sending' AND attempts = 1"); n != 1 {
			t.Errorf("the mail server is called, and %d receipts are being sent", n)
		}
	}
	id := w.pay(payment{description: "A book", suffix: "BOOK 7", live: true})
	if c := w.once(m); c != (receipt.Counts{Made: 1, Sent: 1}) {
		t.Errorf("counted %+v", c)
	}
	for range 3 {
		w.once(m)
		w.once(w.mailer())
	}
	letters := w.post.taken()
	if len(letters) != 1 {
		t.Fatalf("%d mails", len(letters))
	}
	if got := letters[0]; got.from != "receipts@example.com" || len(got.to) != 1 || got.to[0] != "jenny@example.org" {
		t.Errorf("from %s to %v", got.from, got.to)
	}
	head, body := read(t, letters[0])
	for name, want := range map[string]string{
		"From": `"Corner Shop" <receipts@example.com>`, "To": "<jenny@example.org>", "Subject": "Your payment of 20.00 USD to Corner Shop",
		"Message-Id": "<" + id + "@example.com>", "Auto-Submitted": "auto-generated", "Mime-Version": "1.0", "Content-Type": "text/plain; charset=UTF-8",
	} {
		if got := head.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if date, err := head.Date(); err != nil || time.Since(date).Abs() > time.Hour {
		t.Errorf("Date: %v %v", date, err)
	}
	var taken time.Time
	if err := w.Pool.QueryRow(t.Context(), "SELECT created_at FROM outbox WHERE object_id = $1", id).Scan(&taken); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"Amount: 20.00 USD", "Date: " + taken.UTC().Format("2006-01-02 15:04 UTC"), "For: A book", "On your statement: BOOK 7", "Reference: " + id} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %q in:\n%s", line, body)
		}
	}
	if strings.Contains(strings.ToLower(body+head.Get("Subject")), "test") {
		t.Errorf("real money is called a test:\n%s", body)
	}
	if r := w.row(id); r != (row{State: "sent", Attempts: 1, Code: 250}) {
		t.Errorf("the row is %+v", r)
	}
}

// read takes a mail apart; the body is decoded, with line feeds.
func read(t *testing.T, l letter) (mail.Header, string) {
	t.Helper()
	msg, err := mail.ReadMessage(strings.NewReader(string(l.raw)))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, l.raw)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	msg.Header["Subject"] = []string{subject}
	body, err := io.ReadAll(decoded(msg))
	if err != nil {
		t.Fatal(err)
	}
	return msg.Header, strings.ReplaceAll(string(body), "\r\n", "\n")
}

// What gets no receipt here: money that is not taken, receipts that the provider mails, and what
// was before.
func TestWhoGetsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.pay(payment{})
	if _, err := w.events.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := w.mailer()
	w.pay(payment{authorised: true})
	w.pay(payment{others: true})
	if c := w.once(m); c != (receipt.Counts{}) || w.Count("SELECT count(*) FROM receipts") != 0 {
		t.Errorf("counted %+v; the charge before was %s", c, before)
	}
	old := w.pay(payment{age: 25 * time.Hour}) // told late: receipts were switched off for a day
	if c := w.once(m); c != (receipt.Counts{Made: 1, Expired: 1}) || w.row(old) != (row{State: "expired"}) {
		t.Errorf("counted %+v, the row is %+v", c, w.row(old))
	}
	late := w.pay(payment{age: 23 * time.Hour})
	if c := w.once(m); c.Sent != 1 {
		t.Errorf("counted %+v for %s, which is young enough", c, late)
	}
	if n := len(w.post.taken()); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// An authorised charge has its receipt when the money is taken, over what was taken.
func TestCaptured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.mailer()
	first := w.pay(payment{authorised: true})
	w.once(m)
	w.capture(first, 1500)
	w.once(m)
	second := w.pay(payment{authorised: true, address: "mark@example.org"})
	w.capture(second, 700) // before anybody has read of either
	w.once(m)
	letters := w.post.taken()
	if len(letters) != 2 {
		t.Fatalf("%d mails", len(letters))
	}
	for i, want := range []string{"15.00 USD", "7.00 USD"} {
		if _, body := read(t, letters[i]); !strings.Contains(body, "You paid "+want+" to Corner Shop.") || !strings.Contains(body, "This is a test") {
			t.Errorf("not over %s, or not called a test:\n%s", want, body)
		}
	}
}

// A process that ends between the commit and the call loses its mail: nobody sends it, and it is
// told.
func TestCrashBeforeTheCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.mailer()
	id := w.pay(payment{})
	if _, err := w.events.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.New().ReceiptsRead(t.Context(), w.Pool, db.ReceiptsReadParams{MaxRows: 10, Oldest: time.Hour}); err != nil {
		t.Fatal(err)
	}
	claimed, err := db.New().ReceiptsClaim(t.Context(), w.Pool, db.ReceiptsClaimParams{MaxRows: 10, Oldest: time.Hour})
	if err != nil || len(claimed) != 1 || claimed[0].ChargeID != id {
		t.Fatalf("claimed %+v, %v", claimed, err)
	}
	w.once(m)
	if r := w.row(id); r.State != "sending" {
		t.Errorf("the row is %+v while its owner may be at work", r)
	}
	w.Exec("UPDATE receipts SET last_attempt_at = clock_timestamp() - interval '6 minutes'")
	later := w.mailer()
	if c := w.once(later); c != (receipt.Counts{Unknown: 1}) {
		t.Errorf("counted %+v", c)
	}
	for range 3 {
		w.once(later)
		w.once(w.mailer())
	}
	if r := w.row(id); r.State != "unknown" || len(w.post.taken()) != 0 || w.post.begun() != 0 {
		t.Errorf("the row is %+v, %d mails, %d begun", r, len(w.post.taken()), w.post.begun())
	}
	// Its owner was only slow, and knows better.
	got, err := db.New().ReceiptSettle(t.Context(), w.Pool, db.ReceiptSettleParams{ChargeID: id, Attempts: 1, State: "sent", Code: 250, Oldest: time.Hour})
	if err != nil || got != "sent" {
		t.Errorf("settled as %s, %v", got, err)
	}
}

// The result of an attempt is written by whoever made the latest one.
func TestResultsAreFenced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mailer()
	id := w.pay(payment{})
	q, ctx := db.New(), t.Context()
	if _, err := w.events.Number(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := q.ReceiptsRead(ctx, w.Pool, db.ReceiptsReadParams{MaxRows: 10, Oldest: time.Hour}); err != nil {
		t.Fatal(err)
	}
	claim := func() db.ReceiptsClaimRow {
		rows, err := q.ReceiptsClaim(ctx, w.Pool, db.ReceiptsClaimParams{MaxRows: 10, Oldest: time.Hour})
		if err != nil || len(rows) != 1 {
			t.Fatalf("claimed %+v, %v", rows, err)
		}
		return rows[0]
	}
	settle := func(attempts int32, state string) string {
		got, err := q.ReceiptSettle(ctx, w.Pool, db.ReceiptSettleParams{ChargeID: id, Attempts: attempts, State: state, Oldest: time.Hour})
		if err != nil {
			return err.Error()
		}
		return got
	}
	first := claim()
	for range 2 { // the answer to the first was lost
		if got := settle(first.Attempts, "pending"); got != "pending" {
			t.Errorf("settled as %s", got)
		}
	}
	second := claim()
	if got := settle(first.Attempts, "pending"); got != "no rows in result set" {
		t.Errorf("the first attempt wrote over the second: %s", got)
	}
	if got := settle(second.Attempts, "unknown"); got != "unknown" {
		t.Errorf("settled as %s", got)
	}
	w.Exec("UPDATE receipts SET state = 'sent'")
	if got := settle(second.Attempts, "pending"); got != "no rows in result set" {
		t.Errorf("what was sent is %s again", got)
	}
}

// A reply says what may be done about a mail; no reply says it by when it was missed.
func TestReplies(t *testing.T) {
	t.Parallel()
	reply := func(code int) error {
		return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCodeNotSet, Message: "says jenny@example.org"}
	}
	first := func(err error) func(int) error {
		return func(n int) error {
			if n == 1 {
				return err
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		set    func(*postOffice, func(int) error)
		err    error
		first  row // after the first attempt
		state  string
		copies int
	}{
		"4xx to MAIL": {func(p *postOffice, f func(int) error) { p.onMail = f }, reply(451), row{State: "pending", Code: 451}, "sent", 1},
		// of us, not of the mail
		"5xx to MAIL":     {func(p *postOffice, f func(int) error) { p.onMail = f }, reply(550), row{State: "pending", Code: 550}, "sent", 1},
		"hangs up: MAIL":  {func(p *postOffice, f func(int) error) { p.onMail = f }, errHangUp, row{State: "pending"}, "sent", 1},
		"4xx to RCPT":     {func(p *postOffice, f func(int) error) { p.onRcpt = f }, reply(450), row{State: "pending", Code: 450}, "sent", 1},
		"5xx to RCPT":     {func(p *postOffice, f func(int) error) { p.onRcpt = f }, reply(550), row{State: "refused", Code: 550}, "refused", 0},
		"hangs up: RCPT":  {func(p *postOffice, f func(int) error) { p.onRcpt = f }, errHangUp, row{State: "pending"}, "sent", 1},
		"4xx to the mail": {func(p *postOffice, f func(int) error) { p.onData = f }, reply(452), row{State: "pending", Code: 452}, "sent", 1},
		"5xx to the mail": {func(p *postOffice, f func(int) error) { p.onData = f }, reply(554), row{State: "refused", Code: 554}, "refused", 0},
		"hangs up: mail":  {func(p *postOffice, f func(int) error) { p.onData = f }, errHangUp, row{State: "unknown"}, "unknown", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.set(w.post, first(c.err))
			var results []string
			m := w.mailer(func(cfg *receipt.Config) {
				cfg.OnResult = func(result string, _ time.Duration) { results = append(results, result) }
			})
			id := w.pay(payment{})
			w.once(m)
			r := w.row(id)
			if reason := r.Error; reason == "" {
				t.Error("it has no reason")
			}
			r.Error = ""
			if c.first.Attempts = 1; r != c.first {
				t.Errorf("after the first attempt %+v, want %+v", r, c.first)
			}
			for range 3 {
				w.hurry()
				w.once(m)
			}
			if r := w.row(id); r.State != c.state || len(w.post.taken()) != c.copies {
				t.Errorf("in the end %+v and %d mails, want %s and %d", r, len(w.post.taken()), c.state, c.copies)
			}
			want := map[string]string{"pending": "failed sent"}[c.first.State]
			if want == "" {
				want = c.first.State
			}
			if got := strings.Join(results, " "); got != want {
				t.Errorf("told %q, want %q", got, want)
			}
		})
	}
}

// A mail server that is not there is no reason to lose a mail, until it is too old.
func TestServerIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.post.server.Close(); err != nil {
		t.Fatal(err)
	}
	m := w.mailer()
	var ids []string
	for range 20 {
		ids = append(ids, w.pay(payment{}))
	}
	// what was under way at once: the rest is left alone
	if c := w.once(m); c != (receipt.Counts{Made: 20, Failed: 8}) {
		t.Errorf("counted %+v", c)
	}
	w.hurry()
	w.post.serve(t, w.post.address, nil)
	if c := w.once(m); c.Sent != 20 || len(w.post.taken()) != 20 {
		t.Errorf("counted %+v, %d mails", c, len(w.post.taken()))
	}
	if err := w.post.server.Close(); err != nil {
		t.Fatal(err)
	}
	w.Exec("UPDATE receipts SET taken_at = clock_timestamp() - interval '23 hours 59 minutes', state = 'pending', finished_at = NULL, next_run_at = clock_timestamp() WHERE charge_id = $1", ids[0])
	w.Exec("UPDATE receipts SET taken_at = clock_timestamp() - interval '25 hours', state = 'pending', finished_at = NULL, next_run_at = clock_timestamp() WHERE charge_id = $1", ids[1])
	slow := w.mailer(func(c *receipt.Config) { c.Pause = 10 * time.Minute })
	if c := w.once(slow); c != (receipt.Counts{Expired: 2}) || w.row(ids[0]).Attempts == w.row(ids[1]).Attempts {
		t.Errorf("counted %+v; the rows are %+v and %+v", c, w.row(ids[0]), w.row(ids[1]))
	}
}

// Several mailers at once, in front of a mail server that has its moods: each charge has one mail.
func TestMailersShareTheWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	moody := func(int) error {
		if rand.IntN(4) == 0 {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "not now"}
		}
		return nil
	}
	w.post.onRcpt, w.post.onData = moody, moody
	const charges = 200
	for i := range charges {
		w.pay(payment{address: fmt.Sprintf("payer-%d@example.org", i)})
	}
	// The first mailer's beginning would be after them.
	w.Exec("INSERT INTO receipts_cursor (position) VALUES (0)")
	if _, err := w.events.Number(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var working sync.WaitGroup
	for range 3 {
		m := w.mailer(func(c *receipt.Config) { c.Pause = time.Millisecond })
		working.Go(func() { m.Work(ctx) })
	}
	for deadline := time.Now().Add(time.Minute); w.Count("SELECT count(*) FROM receipts WHERE state = 'sent'") < charges; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("only %d are sent", w.Count("SELECT count(*) FROM receipts WHERE state = 'sent'"))
		}
	}
	stop()
	working.Wait()
	had := map[string]int{}
	for _, l := range w.post.taken() {
		had[l.to[0]]++
	}
	for address, n := range had {
		if n != 1 {
			t.Errorf("%s has %d mails", address, n)
		}
	}
	if len(had) != charges {
		t.Errorf("%d have a mail", len(had))
	}
}

// Old receipts are forgotten, but none whose charge could get another.
func TestClean(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.mailer()
	old, young, pending := w.pay(payment{}), w.pay(payment{}), w.pay(payment{})
	w.once(m)
	w.Exec("UPDATE receipts SET created_at = clock_timestamp() - interval '49 hours' WHERE charge_id <> $1", young)
	w.Exec("UPDATE receipts SET created_at = clock_timestamp() - interval '47 hours' WHERE charge_id = $1", young)
	w.Exec("UPDATE receipts SET state = 'pending', finished_at = NULL, next_run_at = clock_timestamp() + interval '1 hour' WHERE charge_id = $1", pending)
	w.once(w.mailer()) // keeps them forever
	if n := w.Count("SELECT count(*) FROM receipts"); n != 3 {
		t.Errorf("%d are left, want all", n)
	}
	w.once(w.mailer(func(c *receipt.Config) { c.TTL = time.Minute })) // less than makes sense
	if n := w.Count("SELECT count(*) FROM receipts WHERE charge_id IN ($1, $2)", young, pending); n != 2 || w.Count("SELECT count(*) FROM receipts") != 2 {
		t.Errorf("%d are left; gone should be %s", n, old)
	}
}

// Operators find them.
func TestNewest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.mailer()
	first := w.pay(payment{})
	w.once(m)
	w.post.onRcpt = func(int) error { return &smtp.SMTPError{Code: 550, Message: "unknown"} }
	second := w.pay(payment{address: "nobody@example.org"})
	w.once(m)
	for _, c := range []struct {
		s    receipt.Selection
		want string
	}{
		{receipt.Selection{Limit: 10}, second + " nobody@example.org refused, " + first + " jenny@example.org sent, "},
		{receipt.Selection{Limit: 1}, second + " nobody@example.org refused, "},
		{receipt.Selection{Limit: 10, State: "sent", AccountID: account}, first + " jenny@example.org sent, "},
		{receipt.Selection{Limit: 10, AccountID: "acct_2"}, ""},
		{receipt.Selection{Limit: 10, Since: time.Now().Add(time.Hour)}, ""},
	} {
		list, err := receipt.Newest(t.Context(), w.Pool, c.s)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range list {
			got += r.ChargeID + " " + r.Address + " " + r.State + ", "
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.s, got, c.want)
		}
	}
}

func decoded(msg *mail.Message) io.Reader {
	if msg.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
		return quotedprintable.NewReader(msg.Body)
	}
	return msg.Body
}
