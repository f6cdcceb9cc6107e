package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/mail"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"paidonce/api/apitest"
)

// postOffice is a mail server; it takes its time.
type postOffice struct {
	url  string
	slow time.Duration // at most this for each command
	busy chan struct{} // somebody has just come

	mu      sync.Mutex
	letters map[string][]string // by recipient
}

func newPostOffice(t *testing.T, slow time.Duration) *postOffice {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &postOffice{
		url: "smtp://" + l.Addr().String(), slow: slow, busy: make(chan struct{}, 1),
		letters: map[string][]string{},
	}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &postCounter{office: p}, nil
	}))
	server.ErrorLog = log.New(io.Discard, "", 0)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { _ = server.Close(); serving.Wait() })
	return p
}

// of returns what an address was sent.
func (p *postOffice) of(address string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.letters[address]
}

type postCounter struct {
	office *postOffice
	to     string
}

func (c *postCounter) pause() { time.Sleep(rand.N(c.office.slow + 1)) }

func (c *postCounter) Mail(string, *smtp.MailOptions) error {
	select {
	case c.office.busy <- struct{}{}:
	default:
	}
	c.pause()
	return nil
}

func (c *postCounter) Rcpt(to string, _ *smtp.RcptOptions) error {
	c.pause()
	c.to = to
	return nil
}

func (c *postCounter) Data(r io.Reader) error {
	var b bytes.Buffer
	if _, err := b.ReadFrom(r); err != nil {
		return err // its sender is gone before the final dot
	}
	c.office.mu.Lock()
	c.office.letters[c.to] = append(c.office.letters[c.to], b.String())
	c.office.mu.Unlock()
	c.pause() // it has the mail, and has not said so
	return nil
}

func (c *postCounter) Reset()        {}
func (c *postCounter) Logout() error { return nil }

func receiptTo(address string) string {
	return fmt.Sprintf(
		`{"amount":2000,"currency":"usd","source":"tok_visa","receipt_email":%q,"description":"A book"}`, address)
}

// 40 charges with receipts, and instances, their mailers inside, that are killed at random all
// along: nobody has two mails, every charge has its row, and what the database says was sent was.
// The provider is told no address: it would mail a receipt, too.
func TestReceiptsWhileServeIsKilled(t *testing.T) {
	t.Parallel()
	post := newPostOffice(t, 100*time.Millisecond)
	w := newWorld(t, "PAIDONCE_SMTP_URL="+post.url, "PAIDONCE_WORKERS=relay")
	w.sim.slow(callMillis) // so that there are charges all along
	const charges, kills = 40, 6
	var mu sync.Mutex
	p := w.serve()
	c := w.client(p)
	current := func() *apitest.Client {
		mu.Lock()
		defer mu.Unlock()
		return c
	}
	address := func(i int) string { return fmt.Sprintf("payer-%d@example.org", i) }
	done := make(chan struct{})
	go func() {
		defer close(done)
		together(4, func(n int) {
			for i := n; i < charges; i += 4 {
				if a, _ := until(t, current, fmt.Sprint("k", i), receiptTo(address(i))); a.Code != http.StatusCreated {
					t.Errorf("got %d %s, want 201", a.Code, a.Body)
				}
			}
		})
	}()
	for range kills {
		select {
		case <-post.busy:
			time.Sleep(rand.N(3 * post.slow)) // anywhere in a mail, or between two
		case <-time.After(patience):
			t.Error("nobody mails anything")
		}
		p.kill()
		p = w.serve()
		mu.Lock()
		c = w.client(p)
		mu.Unlock()
	}
	<-done
	eventually(t, "every charge has its row, and none is due", func() bool {
		return querySQL[int](t, w.dbURL, "SELECT count(*) FROM receipts") == charges &&
			querySQL[int](t, w.dbURL, "SELECT count(*) FROM receipts WHERE state = 'pending'") == 0
	})
	p.kill()
	w.must("relay", "--once", "--json") // finds nothing more to send
	lost := 0
	for i := range charges {
		mails := post.of(address(i))
		state := querySQL[string](t, w.dbURL, "SELECT r.state FROM receipts r JOIN charges c ON "+
			"c.id = r.charge_id WHERE c.receipt_email = $1", address(i))
		switch {
		case len(mails) > 1:
			t.Errorf("%s has %d mails", address(i), len(mails))
		case state == "sent" && len(mails) != 1, state != "sent" && state != "sending":
			t.Errorf("%s has %d mails and its receipt is %s", address(i), len(mails), state)
		case state == "sending":
			lost++
		}
	}
	for _, r := range w.sim.sent() {
		if r.Params["receipt_email"] != "" {
			t.Errorf("the provider was told %s", r.Params["receipt_email"])
		}
	}
	w.checkBooks()
	t.Logf("of %d receipts %d were being sent when their process was killed", charges, lost)
}

// One instance, one charge, and the setting alone: the mail has the charge, the answer has the
// address, and the commands tell.
func TestReceipt(t *testing.T) {
	t.Parallel()
	post := newPostOffice(t, 0)
	w := newWorld(t)
	plain := w.client(w.serve()) // before it is switched on: Stripe mails it
	if a := plain.Charge("before", receiptTo("before@example.org")); a.Code != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", a.Code, a.Body)
	}
	w.env = append(w.env, "PAIDONCE_SMTP_URL="+post.url)
	c := w.client(w.serve())
	a := c.Charge("k", receiptTo("jenny@example.org"))
	if a.Code != http.StatusCreated ||
		!strings.Contains(string(a.Body), `"receipt_email":"jenny@example.org"`) {
		t.Fatalf("got %d %s, want 201", a.Code, a.Body)
	}
	held := c.Charge("held",
		strings.Replace(receiptTo("held@example.org"), "{", `{"capture":false,`, 1))
	var counts map[string]int64
	if err := json.Unmarshal([]byte(w.must("relay", "--once", "--json").stdout), &counts); err != nil || counts["receipts_sent"] != 1 {
		t.Errorf("counted %v, %v", counts, err)
	}
	if got := c.Post("/v1/charges/"+held.ID()+"/capture", "capture", `{"amount":700}`); got.Code != http.StatusOK {
		t.Fatalf("got %d %s, want 200", got.Code, got.Body)
	}
	w.must("relay", "--once")
	w.must("relay", "--once")
	for address, want := range map[string]string{"jenny@example.org": "20.00 USD",
		"held@example.org": "7.00 USD"} {
		mails := post.of(address)
		if len(mails) != 1 {
			t.Errorf("%s has %d mails", address, len(mails))
			continue
		}
		msg, err := mail.ReadMessage(strings.NewReader(mails[0]))
		if err != nil {
			t.Fatal(err)
		}
		if got := msg.Header.Get("Subject"); got != "[Test] Your payment of "+want+" to shop" ||
			msg.Header.Get("From") != `"shop" <receipts@localhost>` {
			t.Errorf("%s, from %s", got, msg.Header.Get("From"))
		}
	}
	if n := len(post.of("before@example.org")); n != 0 {
		t.Errorf("a charge of before it was switched on has %d mails", n)
	}
	told := map[string]bool{}
	for _, r := range w.sim.sent() {
		told[r.Params["receipt_email"]] = true
	}
	if len(told) != 2 || !told["before@example.org"] || !told[""] {
		t.Errorf("the provider was told %v", told)
	}
	var list []struct{ Charge, Email, State string }
	if err := json.Unmarshal([]byte(w.must("receipts", "list", "--state", "sent", "--json").stdout),
		&list); err != nil || len(list) != 2 || list[1].Charge != a.ID() ||
		list[1].Email != "jenny@example.org" {
		t.Errorf("listed %+v, %v", list, err)
	}
	if text := w.must("receipts", "list").stdout; strings.Count(text, "\n") != 3 {
		t.Errorf("listed:\n%s", text)
	}
	if r := w.run(nil, "receipts", "list", "--state", "lost"); r.code != 2 {
		t.Errorf("exit code %d %s", r.code, r.stderr)
	}
}

// A mail server that is away keeps no charge waiting, and a relay that is asked to end ends.
func TestReceiptsWithoutAServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // nobody listens there
	w := newWorld(t, "PAIDONCE_SMTP_URL=smtp://shop:hunter2@"+l.Addr().String(),
		"PAIDONCE_WORKERS=relay")
	p := w.serve()
	if a := w.client(p).Charge("k", receiptTo("jenny@example.org")); a.Code != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", a.Code, a.Body)
	}
	eventually(t, "the mail is tried", func() bool {
		return querySQL[int](t, w.dbURL, "SELECT count(*) FROM receipts WHERE state = 'pending' "+
			"AND attempts > 0 AND last_error <> ''") == 1
	})
	p.signal(syscall.SIGTERM)
	if state := p.wait(); !state.Success() {
		t.Errorf("%v", state)
	}
	if said := p.output(); strings.Contains(said, "hunter2") || strings.Contains(said, "jenny") {
		t.Errorf("it says too much:\n%s", said)
	}
}
