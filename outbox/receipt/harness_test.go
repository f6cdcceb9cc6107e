package receipt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net"
	"net/mail"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"paidonce/charges"
	"paidonce/db"
	"paidonce/internal/dbtest"
	"paidonce/outbox"
	"paidonce/outbox/receipt"
)

const account = "acct_1"

// world is a database with an account, and a mail server.
type world struct {
	*dbtest.Database
	events *outbox.Store
	post   *postOffice
}

func newWorld(t testing.TB) *world {
	t.Helper()
	d := dbtest.Open(t, 24)
	w := &world{Database: d, events: outbox.New(outbox.Config{Pool: d.Pool}), post: newPostOffice(t)}
	w.Exec("INSERT INTO accounts (id, name) VALUES ($1, 'Corner Shop')", account)
	return w
}

// row is what a receipt came to.
type row struct {
	State    string
	Attempts int
	Code     int
	Error    string
}

func (w *world) row(charge string) (r row) {
	w.T.Helper()
	err := w.Pool.QueryRow(context.Background(), "SELECT state, attempts, coalesce(last_code, 0), coalesce(last_error, '') FROM receipts WHERE charge_id = $1", charge).
		Scan(&r.State, &r.Attempts, &r.Code, &r.Error)
	if err != nil {
		w.T.Fatal(err)
	}
	return r
}

// mailer returns a mailer that talks to the world's mail server, and that has begun.
func (w *world) mailer(change ...func(*receipt.Config)) *receipt.Mailer {
	w.T.Helper()
	server, err := receipt.ParseServer("smtp://" + w.post.address)
	if err != nil {
		w.T.Fatal(err)
	}
	cfg := receipt.Config{
		Pool: w.Pool, Server: server, From: &mail.Address{Address: "receipts@example.com"}, Decimals: charges.Decimals,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, c := range change {
		c(&cfg)
	}
	m := receipt.New(cfg)
	if err := m.Begin(context.Background()); err != nil {
		w.T.Fatal(err)
	}
	return m
}

// once has everything mailed that is due.
func (w *world) once(m *receipt.Mailer) receipt.Counts {
	w.T.Helper()
	if _, err := w.events.Number(context.Background()); err != nil {
		w.T.Fatal(err)
	}
	if err := m.RunOnce(context.Background()); err != nil {
		w.T.Fatal(err)
	}
	return m.Counts()
}

// hurry makes due what rests.
func (w *world) hurry() {
	w.Exec("UPDATE receipts SET next_run_at = clock_timestamp() WHERE state = 'pending'")
}

// payment is a charge to be.
type payment struct {
	amount      int64
	currency    string
	description string
	suffix      string
	address     string
	live        bool
	authorised  bool // the money is not taken yet
	others      bool // the provider mails the receipt
	age         time.Duration
}

// pay stores a settled charge with its event, as a settlement does, and returns its id.
func (w *world) pay(p payment) string {
	w.T.Helper()
	if p.amount == 0 {
		p.amount = 2000
	}
	if p.currency == "" {
		p.currency = "usd"
	}
	if p.address == "" {
		p.address = "jenny@example.org"
	}
	id, captured := db.NewID("ch"), p.amount
	if p.authorised {
		captured = 0
	}
	w.Exec(`INSERT INTO charges (id, account_id, operation_id, status, amount, amount_captured, currency, capture, captured, description, receipt_email,
			statement_descriptor_suffix, livemode, own_receipt, provider_id)
		VALUES ($1, $2, $3, 'succeeded', $4, $5, $6, $7, $7, NULLIF($8, ''), $9, NULLIF($10, ''), $11, $12, 'x' || $1)`,
		id, account, db.NewID("op"), p.amount, captured, p.currency, !p.authorised, p.description, p.address, p.suffix, p.live, !p.others)
	w.tell("charge.succeeded", id, p.age)
	return id
}

// capture takes the money of an authorised charge.
func (w *world) capture(id string, amount int64) {
	w.T.Helper()
	w.Exec("UPDATE charges SET captured = true, amount_captured = $2 WHERE id = $1", id, amount)
	w.tell("charge.captured", id, 0)
}

func (w *world) tell(typ, charge string, age time.Duration) {
	w.T.Helper()
	payload, err := json.Marshal(map[string]string{"type": typ})
	if err != nil {
		w.T.Fatal(err)
	}
	event := db.NewID("evt")
	err = db.New().OutboxAdd(context.Background(), w.Pool, db.OutboxAddParams{
		EventID: event, AccountID: account, Type: typ, OperationID: db.NewID("op"), ObjectID: charge, Payload: payload,
	})
	if err != nil {
		w.T.Fatal(err)
	}
	w.Exec("UPDATE outbox SET created_at = created_at - $2::interval WHERE event_id = $1", event, age)
}

// letter is a mail that a mail server took.
type letter struct {
	from string
	to   []string
	raw  []byte
}

// postOffice is a mail server on a socket.
type postOffice struct {
	address string
	server  *smtp.Server

	mu      sync.Mutex
	letters []letter
	tries   int
	// what is done at each command: an *smtp.SMTPError is the reply; errHangUp: the connection ends
	// without one.
	onMail, onRcpt, onData func(n int) error // n counts the mails that were begun, from 1
	onHello                func()            // somebody comes in
	password               string            // of the user "shop"; "": nobody logs in
}

var errHangUp = &smtp.SMTPError{Code: 421}

func newPostOffice(t testing.TB) *postOffice {
	p := &postOffice{}
	p.serve(t, "127.0.0.1:0", nil)
	return p
}

// serve begins to listen.
func (p *postOffice) serve(t testing.TB, address string, change func(*smtp.Server)) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		if p.onHello != nil {
			p.onHello()
		}
		return &counter{office: p, conn: c}, nil
	}))
	server.Domain, server.EnableSMTPUTF8, server.AllowInsecureAuth = "mail.example.com", true, true
	server.ErrorLog = log.New(io.Discard, "", 0)
	if change != nil {
		change(server)
	}
	p.address, p.server = l.Addr().String(), server
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { _ = server.Close(); serving.Wait() })
}

func (p *postOffice) taken() []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]letter(nil), p.letters...)
}

func (p *postOffice) begun() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tries
}

// counter is where one customer is served.
type counter struct {
	office  *postOffice
	conn    *smtp.Conn
	n       int
	letter  letter
	allowed bool
}

func (c *counter) do(what func(n int) error) error {
	if what == nil {
		return nil
	}
	err := what(c.n)
	if err == errHangUp { //nolint:errorlint // the value itself
		_ = c.conn.Conn().Close()
	}
	return err
}

func (c *counter) AuthMechanisms() []string {
	if c.office.password == "" {
		return nil
	}
	return []string{sasl.Plain}
}

func (c *counter) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "shop" || password != c.office.password {
			return &smtp.SMTPError{Code: 535, Message: "no such user as shop with " + password}
		}
		c.allowed = true
		return nil
	}), nil
}

func (c *counter) Mail(from string, _ *smtp.MailOptions) error {
	c.office.mu.Lock()
	c.office.tries++
	c.n = c.office.tries
	c.office.mu.Unlock()
	if c.office.password != "" && !c.allowed {
		return smtp.ErrAuthRequired
	}
	c.letter = letter{from: from}
	return c.do(c.office.onMail)
}

func (c *counter) Rcpt(to string, _ *smtp.RcptOptions) error {
	c.letter.to = append(c.letter.to, to)
	return c.do(c.office.onRcpt)
}

func (c *counter) Data(r io.Reader) error {
	var b bytes.Buffer
	if _, err := b.ReadFrom(r); err != nil {
		return err
	}
	err := c.do(c.office.onData)
	if err == nil || err == errHangUp { //nolint:errorlint // the value itself: it has the mail, and only its reply is lost
		c.letter.raw = b.Bytes()
		c.office.mu.Lock()
		c.office.letters = append(c.office.letters, c.letter)
		c.office.mu.Unlock()
	}
	return err
}

func (c *counter) Reset()        {}
func (c *counter) Logout() error { return nil }

func logTo(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
