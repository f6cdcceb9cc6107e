package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/api/apitest"
	"paidonce/internal/dbtest"
)

// A shop whose database is put back to an earlier moment, in one of several ways. Whatever was told
// before must be told again, and nothing must move twice.
type restored struct {
	*world
	answers map[string]apitest.Answer
	charge  string // captured before the copy
	held    string // authorised before the copy
}

func (r *restored) post(c *apitest.Client, key string) apitest.Answer {
	r.t.Helper()
	switch kind, _, _ := strings.Cut(key, "-"); kind {
	case "refund":
		return c.Post("/v1/refunds", key, fmt.Sprintf(`{"charge":%q,"amount":300}`, r.charge))
	case "capture":
		return c.Post("/v1/charges/"+r.held+"/capture", key, `{}`)
	case "declined":
		return c.Charge(key, card("tok_chargeDeclined"))
	case "hold":
		return c.Charge(key,
			`{"amount":700,"currency":"usd","source":"tok_visa","capture":false,"metadata":{"order":"7"},"description":"a hold"}`)
	}
	return c.Charge(key,
		`{"amount":2000,"currency":"usd","source":"tok_visa","description":"tea\tfor\ntwo","metadata":{"order":"`+key+`","note":"`+strings.Repeat("é", 500)+`"}}`)
}

// before makes what the copy has.
func (r *restored) before(c *apitest.Client) {
	r.t.Helper()
	r.charge, r.held = r.post(c, "old-1").ID(), r.post(c, "hold-old").ID()
	if r.charge == "" || r.held == "" {
		r.t.Fatal("could not charge")
	}
}

// after makes what the copy has not.
func (r *restored) after(c *apitest.Client, charges int) {
	r.t.Helper()
	r.answers = map[string]apitest.Answer{}
	for i := range charges {
		r.note(c, fmt.Sprint("charge-", i))
	}
	for _, key := range []string{"hold-new", "declined-1", "refund-1", "refund-2", "capture-1"} {
		r.note(c, key)
	}
}

func (r *restored) note(c *apitest.Client, key string) {
	r.t.Helper()
	a := r.post(c, key)
	if a.Code >= 500 {
		r.t.Fatalf("%s: %d %s", key, a.Code, a.Body)
	}
	r.answers[key] = a
}

// again sends everything again, from several clients at once, until each has an answer.
func (r *restored) again(next func() *apitest.Client) {
	r.t.Helper()
	var all sync.WaitGroup
	for key, want := range r.answers {
		all.Go(func() {
			for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
				got := r.post(next(), key)
				switch {
				case got.Code == http.StatusServiceUnavailable || got.Code == http.StatusConflict:
					if got.Header.Get("Retry-After") == "" {
						r.t.Errorf("%s: %d without Retry-After", key, got.Code)
					}
					if time.Now().Before(deadline) {
						continue
					}
					r.t.Errorf("%s: %d to the end: %s", key, got.Code, got.Body)
				case got.Code != want.Code || string(got.Body) != string(want.Body):
					r.t.Errorf("%s: %d %s\nwas told before: %d %s", key, got.Code, got.Body,
						want.Code, want.Body)
				case got.Header.Get("Idempotent-Replayed") != "true" && key != "capture-1":
					r.t.Errorf("%s: not replayed", key)
				}
				return
			}
		})
	}
	all.Wait()
}

// settledThere is what the provider has.
func (r *restored) settledThere(charges int) {
	r.t.Helper()
	var ledger struct {
		Charges []simCharge
		Refunds []struct{ Amount int64 }
	}
	r.sim.control(http.MethodGet, "ledger", nil, &ledger)
	if len(ledger.Charges) != charges || len(ledger.Refunds) != 2 {
		r.t.Errorf("the provider has %d charges and %d refunds, want %d and 2", len(ledger.Charges),
			len(ledger.Refunds), charges)
	}
	if a := r.run(nil, "audit", "--since", "1h"); a.code != 0 {
		r.t.Errorf("the audit: exit code %d\n%s%s", a.code, a.stdout, a.stderr)
	}
}

const forgotten = 12 // charges that the copy has not

// made is how many charges are made in all: two before the copy, one authorised and one declined
// after it.
const made = 2 + forgotten + 2

// everything checks what a restored shop must be able to do.
func (r *restored) everything(next func() *apitest.Client) {
	r.t.Helper()
	r.again(next)
	r.settledThere(made)
	c := next()
	for key, body := range map[string]string{"charge-0": `{"amount":1,"currency":"usd","source":"tok_visa"}`, "charge-1": twenty} {
		if a := c.Charge(key, body); a.Code != http.StatusUnprocessableEntity {
			r.t.Errorf("%s with another request: %d %s, want 422", key, a.Code, a.Body)
		}
	}
	for _, key := range []string{"charge-3", "hold-new"} {
		if a := c.Get("/v1/charges/" + r.answers[key].ID()); a.Code != http.StatusOK {
			r.t.Errorf("%s: %d %s", key, a.Code, a.Body)
		}
		if a := c.Get("/v1/idempotency_keys/" + key); a.Code != http.StatusOK {
			r.t.Errorf("the key %s: %d %s", key, a.Code, a.Body)
		}
	}
	// What was captured since can be refunded, what was authorised since can be captured.
	if a := c.Post("/v1/refunds", "refund-captured",
		fmt.Sprintf(`{"charge":%q,"amount":1}`, r.held)); a.Code != http.StatusCreated {
		r.t.Errorf("a refund of what was captured since: %d %s", a.Code, a.Body)
	}
	if a := c.Post("/v1/charges/"+r.answers["hold-new"].ID()+"/capture", "capture-new", `{}`); a.Code != http.StatusOK {
		r.t.Errorf("a capture of what was authorised since: %d %s", a.Code, a.Body)
	}
	if a := c.Charge("new", twenty); a.Code != http.StatusCreated ||
		a.Header.Get("Idempotent-Replayed") != "" {
		r.t.Errorf("a new charge: %d %s", a.Code, a.Body)
	}
}

// The copy is another database of the same server: neither system identifier nor timeline tell.
func TestRestoredFromATemplate(t *testing.T) {
	t.Parallel()
	r := &restored{world: newWorld(t)}
	p := r.serve()
	r.before(r.client(p))
	p.kill()
	u, err := url.Parse(r.dbURL)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	execSQL(t, withDatabase(t, r.dbURL, "postgres"),
		"CREATE DATABASE "+name+"_backup TEMPLATE "+name)
	p = r.serve()
	r.after(r.client(p), forgotten)
	told := events(t, r.client(p))
	p.kill()
	r.dbURL = withDatabase(t, r.dbURL, name+"_backup")
	r.env = append(r.env, "DATABASE_URL="+r.dbURL)
	c := r.client(r.serve())
	r.everything(func() *apitest.Client { return c })
	// What was told before is told again under the same id, once.
	again := events(t, c)
	for id, what := range told {
		if again[id] != what {
			t.Errorf("the event %s (%s) is not told again: %q", id, what, again[id])
		}
	}
	r.readOn(c)
	// Seven events are of what was done since: nothing else is new.
	if n := len(again) - len(told); n != 4 {
		t.Errorf("%d events are told that were not told before, want 4: %v", n, again)
	}
}

// readOn reads on after each of the charges that were forgotten: those that came after it are
// there.
func (r *restored) readOn(c *apitest.Client) {
	r.t.Helper()
	for i := range forgotten - 1 {
		cursor := ""
		for id, what := range events(r.t, c) {
			if strings.HasPrefix(what,
				"charge.succeeded "+r.answers[fmt.Sprint("charge-", i)].ID()) {
				cursor = id
			}
		}
		a := c.Get("/v1/events?limit=100&starting_after=" + cursor)
		for later := i + 1; later < forgotten; later++ {
			if key := fmt.Sprint("charge-", later); !strings.Contains(string(a.Body),
				r.answers[key].ID()) {
				r.t.Errorf("a reader that stood at the event of charge-%d does not get %s", i, key)
			}
		}
	}
}

// events are all events of the account: id to type, object, place among the object's events and
// what was refunded.
func events(t *testing.T, c *apitest.Client) map[string]string {
	t.Helper()
	all, after := map[string]string{}, ""
	for {
		a := c.Get("/v1/events?limit=100" + after)
		var page struct {
			HasMore bool `json:"has_more"`
			Data    []struct {
				ID, Type string
				Sequence int
				Data     struct {
					Object struct {
						ID             string
						AmountRefunded int64 `json:"amount_refunded"`
					}
				}
			}
		}
		a.JSON(&page)
		for _, e := range page.Data {
			all[e.ID] = fmt.Sprint(e.Type, " ", e.Data.Object.ID, ", ", e.Sequence,
				". of it, refunded ", e.Data.Object.AmountRefunded)
			after = "&starting_after=" + e.ID
		}
		if !page.HasMore {
			return all
		}
	}
}

// The data directory is put back as it was, with the server's identity and timeline, while no
// server runs: only the provider's records tell.
func TestRestoredInPlace(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	r := &restored{world: newWorldOn(t, server.URL())}
	p := r.serve()
	r.before(r.client(p))
	p.kill()
	data := querySQL[string](t, server.URL(), "SHOW data_directory")
	server.Stop()
	backup := filepath.Join(filepath.Dir(data), "backup")
	copyDirectory(t, data, backup)
	server.Start()
	p = r.serve()
	r.after(r.client(p), forgotten)
	p.kill()
	server.Kill()
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	copyDirectory(t, backup, data)
	server.Start()
	c := r.client(r.serve())
	r.everything(func() *apitest.Client { return c })
}

// The same under a server of our own that goes on running: its memory tells.
func TestRestoredUnderARunningServer(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	r := &restored{world: newWorldOn(t, server.URL())}
	p := r.serve()
	r.before(r.client(p))
	data := querySQL[string](t, server.URL(), "SHOW data_directory")
	server.Stop()
	backup := filepath.Join(filepath.Dir(data), "backup")
	copyDirectory(t, data, backup)
	server.Start()
	c := r.client(p)
	eventually(t, "ready again", func() bool { return get(p.url+"/readyz") == http.StatusOK })
	eventually(t, "claims go on", func() bool {
		return c.Charge("warm-up", twenty).Code == http.StatusCreated
	})
	r.after(c, forgotten)
	server.Kill()
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	copyDirectory(t, backup, data)
	server.Start()
	r.again(func() *apitest.Client { return c })
	r.settledThere(made + 1)
}

func copyDirectory(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
}
