package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"paidonce/api/apitest"
	"paidonce/internal/race"
)

// chaosOrders is how many orders a chaos run has; PAIDONCE_ORDERS sets another number.
func chaosOrders(t *testing.T) int {
	t.Helper()
	text := os.Getenv("PAIDONCE_ORDERS")
	switch n, err := strconv.Atoi(text); {
	case text != "" && (err != nil || n < 3):
		t.Fatalf("PAIDONCE_ORDERS=%s: a number from 3 on", text)
	case text != "":
		return n
	case race.Enabled:
		return 12
	}
	return 30
}

// deployments is a server that is killed and replaced, again and again.
type deployments struct {
	w      *world
	mu     sync.Mutex
	server *proc
	ended  chan struct{}
}

// deploy starts a server, and replaces it each time that the provider has had so many requests
// more. started is told of each server.
func (w *world) deploy(times, requests int, started func(*proc)) *deployments {
	d := &deployments{w: w, server: w.serve(), ended: make(chan struct{})}
	started(d.server)
	go func() {
		defer close(d.ended)
		for n := range times {
			w.sim.awaitRequests((n + 1) * requests)
			next := w.serve()
			started(next)
			d.mu.Lock()
			old := d.server
			d.server = next
			d.mu.Unlock()
			old.kill()
		}
	}()
	return d
}

// client returns a client of the server that serves now.
func (d *deployments) client() *apitest.Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.w.client(d.server)
}

// Three clients try to pay each order, each under a key of its own and until it knows, while
// servers are killed and the provider drops answers: each order is paid once.
func TestManyClientsPayEachOrderOnce(t *testing.T) {
	t.Parallel()
	w, orders := newWorld(t), chaosOrders(t)
	w.sim.arm(orders/3, fault{"type": "drop_after"})
	d := w.deploy(4, orders/5, func(*proc) {})
	var mu sync.Mutex
	paid := make([]map[string]bool, orders)
	together(3*orders, func(i int) {
		body := fmt.Sprintf(`{"amount":2000,"currency":"usd","source":"tok_visa","reference":"order %d"}`, i/3)
		a, _ := until(t, d.client, fmt.Sprint("client-", i%3, "-order-", i/3), body)
		id := a.Error().Charge
		if a.Code == http.StatusCreated {
			id = a.ID()
		} else if code := a.Error().Code; code != "reference_already_paid" {
			t.Errorf("order %d: %d %s", i/3, a.Code, a.Body)
		}
		mu.Lock()
		defer mu.Unlock()
		if paid[i/3] == nil {
			paid[i/3] = map[string]bool{}
		}
		paid[i/3][id] = true
	})
	<-d.ended
	for n, ids := range paid {
		if len(ids) != 1 {
			t.Errorf("order %d was paid by %v", n, ids)
		}
	}
	w.sim.mustHave(t, orders)
	w.checkBooks()
}

// A program with Stripe's library that names its order in metadata, as many do, pays it once,
// whatever keys it makes up.
func TestStripeGoPaysAnOrderOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if r := w.must("accounts", "set", "shop", "--reference-from", "metadata.order"); !strings.Contains(r.stdout,
		"takes references from: metadata.order") {
		t.Errorf("set says %s", r.stdout)
	}
	sdk, sent := w.stripeGo(w.serve(), 3)
	order := func() (string, error) {
		params := chargeOf("", 2000, "tok_visa") // the library makes up a key
		params.Metadata["order"] = "6735"
		c, err := sdk.Charges.New(params)
		if err != nil {
			return "", err
		}
		return c.ID, nil
	}
	id, err := order()
	if err != nil {
		t.Fatal(err)
	}
	sent.taken()
	_, err = order()
	if e := asError(err); e.HTTPStatusCode != http.StatusBadRequest || e.Code != "reference_already_paid" ||
		e.Type != "invalid_request_error" || e.ChargeID != id {
		t.Errorf("the second time: %+v", e)
	}
	if tries := len(sent.taken()); tries != 1 {
		t.Errorf("the library tried %d times", tries)
	}
	w.sim.mustHave(t, 1)
}

// The command line: where references come from, a charge with one, and what operators see of it.
func TestReferencesOnTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for args, said := range map[string]string{
		"accounts set shop":                                "--reference-from must be metadata.NAME, or none",
		"accounts set shop --reference-from order":         "--reference-from must be metadata.NAME, or none",
		"accounts set shop --reference-from metadata.a[b]": "square brackets",
		"accounts set":                                     "arg",
	} {
		if r := w.run(nil, strings.Fields(args)...); r.code != 2 || !strings.Contains(r.stderr, said) {
			t.Errorf("%s: exit code %d, %s", args, r.code, r.stderr)
		}
	}
	if r := w.run(nil, "accounts", "set", "nobody", "--reference-from", "none"); r.code != 1 ||
		!strings.Contains(r.stderr, "nobody") {
		t.Errorf("an account that is not there: %d %s", r.code, r.stderr)
	}
	w.must("accounts", "set", "shop", "--reference-from", "metadata.order")
	var list []struct {
		Name string `json:"name"`
		From string `json:"reference_from"`
	}
	if err := json.Unmarshal([]byte(w.must("accounts", "list", "--json").stdout), &list); err != nil ||
		len(list) != 1 || list[0].Name != "shop" || list[0].From != "metadata.order" {
		t.Errorf("the list is %+v, %v", list, err)
	}
	p := w.serve()
	client := []string{"PAIDONCE_URL=" + p.url, "PAIDONCE_API_KEY=" + w.apiKey}
	create := []string{"charges", "create", "--amount", "2000", "--currency", "usd", "--source", "tok_visa"}
	first := w.run(client, append(create, "--reference", "order 1", "--json")...)
	var c struct{ ID, Reference string }
	if err := json.Unmarshal([]byte(first.stdout), &c); err != nil || c.Reference != "order 1" {
		t.Fatalf("got %s%s, %v", first.stdout, first.stderr, err)
	}
	if r := w.run(client, append(create, "--reference", "order 1")...); r.code != 1 ||
		!strings.Contains(r.stderr, c.ID) {
		t.Errorf("a second charge: exit code %d, %s", r.code, r.stderr)
	}
	if r := w.run(client, append(create, "--reference", "order 1", "--duplicate-of", c.ID)...); r.code != 0 {
		t.Errorf("a duplicate: exit code %d, %s", r.code, r.stderr)
	}
	if r := w.must("ops", "show", c.ID); !strings.Contains(r.stdout, "order 1") {
		t.Errorf("ops show says\n%s", r.stdout)
	}
	var shown struct{ Reference *string }
	if err := json.Unmarshal([]byte(w.must("ops", "show", c.ID, "--json").stdout), &shown); err != nil ||
		shown.Reference == nil || *shown.Reference != "order 1" {
		t.Errorf("ops show --json says %v, %v", shown.Reference, err)
	}
}
