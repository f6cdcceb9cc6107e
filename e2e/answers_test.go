package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"paidonce/api/apitest"
)

func card(token string) string {
	return fmt.Sprintf(`{"amount":2000,"currency":"usd","source":%q}`, token)
}

// A decline is an answer like any other: final, also when the card would be taken now.
func TestDeclineIsFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	for token, decline := range map[string]string{"tok_chargeDeclined": "generic_decline",
		"tok_chargeDeclinedInsufficientFunds": "insufficient_funds"} {
		before := w.sim.stats().ChargeRequests
		first := c.Charge(token, card(token))
		e := first.Error()
		if first.Code != http.StatusPaymentRequired || e.Type != "card_error" ||
			e.Code != "card_declined" || e.DeclineCode != decline ||
			e.Advice != "fix_and_use_new_key" {
			t.Errorf("got %d %s, want 402", first.Code, first.Body)
		}
		// From here on the provider would take every card: it forgets the key, and answers every
		// charge with success.
		w.sim.control(http.MethodPost, "forget_keys", map[string]string{}, nil)
		again := c.Charge(token, card(token))
		if again.Code != http.StatusPaymentRequired || !again.Replayed() ||
			string(again.Body) != string(first.Body) {
			t.Errorf("again: %d %s, want the same bytes replayed", again.Code, again.Body)
		}
		if n := w.sim.stats().ChargeRequests - before; n != 1 {
			t.Errorf("the provider was asked %d times, want once", n)
		}
		if a := c.Charge("new-"+token, twenty); a.Code != http.StatusCreated {
			t.Errorf("another key: %d %s", a.Code, a.Body)
		}
	}
	w.checkBooks()
}

// A request that the provider refuses for good is refused for good.
func TestRefusalIsFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	// On a slow machine the first answer may be that nobody knows yet.
	first, _ := until(t, func() *apitest.Client { return c }, "k", card("tok_unknownToken"))
	again := c.Charge("k", card("tok_unknownToken"))
	if first.Code != http.StatusBadRequest || again.Code != first.Code || !again.Replayed() ||
		string(again.Body) != string(first.Body) {
		t.Errorf("%d %s, then %d %s; want 400 and its replay", first.Code, first.Body, again.Code,
			again.Body)
	}
	w.checkBooks()
}

// What is refused before any work does not spend the key.
func TestRefusedBeforeAnyWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	limited := w.client(w.serve("PAIDONCE_RATE_LIMIT=1"))
	if a := c.Charge("k", order(-5)); a.Code != http.StatusBadRequest ||
		a.Error().Param != "amount" {
		t.Errorf("got %d %s, want 400", a.Code, a.Body)
	}
	var refused apitest.Answer
	eventually(t, "the rate limit", func() bool {
		refused = limited.Charge("k", order(-5))
		return refused.Code == http.StatusTooManyRequests
	})
	mayRetry(t, refused)
	if a := c.As("sk_wrong").Charge("k", twenty); a.Code != http.StatusUnauthorized {
		t.Errorf("got %d %s, want 401", a.Code, a.Body)
	}
	if w.status("k") != "" {
		t.Error("the key is taken")
	}
	if a, _ := until(t, func() *apitest.Client {
		return limited
	}, "k", twenty); a.Code != http.StatusCreated || a.Replayed() {
		t.Errorf("%d %s, want that it runs", a.Code, a.Body)
	}
	w.sim.mustHave(t, 1)
}

// A key stands for one POST with its parameters, in whatever notation, and for nothing else.
func TestWhatAKeyStandsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	first := c.Charge("k", twenty)
	path := "/v1/charges/" + first.ID()
	if a := c.Get(path, "Idempotency-Key", "k"); a.Code != http.StatusOK || a.Replayed() {
		t.Errorf("a GET with the key: %d %v", a.Code, a.Header)
	}
	for _, method := range []string{http.MethodDelete, http.MethodPatch} {
		if a := c.Do(c.Request(method, path, "", "Idempotency-Key", "k")); a.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: got %d %s, want 405", method, a.Code, a.Body)
		}
	}
	for name, a := range map[string]apitest.Answer{"another body": c.Charge("k", order(2001)),
		"another query": c.Do(c.Request(http.MethodPost, "/v1/charges?a=b", twenty,
			"Idempotency-Key", "k", "Content-Type", "application/json"))} {
		if a.Code != http.StatusUnprocessableEntity || a.Error().Code != "idempotency_key_reused" ||
			strings.Contains(string(a.Body), first.ID()) {
			t.Errorf("%s: got %d %s, want 422", name, a.Code, a.Body)
		}
	}
	// The same parameters in another notation are the same request.
	if a := c.ChargeForm("k", "source=tok_visa&currency=usd&amount=2000"); !a.Replayed() ||
		a.ID() != first.ID() {
		t.Errorf("as a form: %d %s", a.Code, a.Body)
	}
	// Equal bodies under two keys are two payments.
	if a := c.Charge("k2", twenty); a.Code != http.StatusCreated || a.ID() == first.ID() {
		t.Errorf("under another key: %d %s", a.Code, a.Body)
	}
	w.sim.mustHave(t, 2)
	w.checkBooks()
}

// The scope of a key is the account, found out by the API key alone.
func TestKeyScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	first := c.Charge("1", twenty)
	rotated := c.As(w.newKey("shop").APIKey)
	if a := rotated.Charge("1", twenty); !a.Replayed() || string(a.Body) != string(first.Body) {
		t.Errorf("another API key of the account: %d %s, want a replay", a.Code, a.Body)
	}
	ids := map[string]bool{first.ID(): true}
	const tenants = 12
	for i := range tenants {
		other := c.As(w.newKey(fmt.Sprint("tenant-", i)).APIKey)
		a := other.Charge("1", order(100+i), "X-Forwarded-For", "10.0.0.1", "X-Real-Ip", "10.0.0.1")
		if a.Code != http.StatusCreated || a.Replayed() || ids[a.ID()] {
			t.Errorf("account %d: %d %s", i, a.Code, a.Body)
		}
		ids[a.ID()] = true
		if a := other.Get("/v1/charges/" + first.ID()); a.Code != http.StatusNotFound {
			t.Errorf("account %d reads another's charge: %d", i, a.Code)
		}
	}
	w.sim.mustHave(t, tenants+1)
	w.checkBooks()
}

func TestUnusualKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	long := strings.Repeat("x", 255)
	for _, key := range []string{long, long[:254] + "y", "order.", "order..", "a/b", "a%2Fb", "..",
		"K", "k", `it's "quoted"`, "a b", "~!@#$^&*()=+[]{};:,<>?|"} {
		first := c.Charge(key, twenty)
		again := c.Charge(key, twenty)
		if first.Code != http.StatusCreated || first.Replayed() || !again.Replayed() ||
			again.ID() != first.ID() {
			t.Errorf("%q: %d %s, then %d", key, first.Code, first.Body, again.Code)
		}
	}
	for _, key := range []string{long + "x", "  ", "grüße"} {
		if a := c.Charge(key, twenty); a.Code != http.StatusBadRequest {
			t.Errorf("%q: %d, want 400", key, a.Code)
		}
	}
	if a := c.Charge(`"order."`, twenty); !a.Replayed() {
		t.Errorf("the quoted form: %d %s, want a replay", a.Code, a.Body)
	}
	w.checkBooks()
}

// A revoked API key learns nothing more, replays included, while the instance runs.
func TestRevokedKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	old := w.newKey("shop")
	revoked := c.As(old.APIKey)
	first := revoked.Charge("k", twenty)
	w.must("apikeys", "revoke", old.ID)
	for name, a := range map[string]apitest.Answer{
		"replay": revoked.Charge("k", twenty), "other body": revoked.Charge("k", order(1)),
		"new":  revoked.Charge("k2", twenty),
		"read": revoked.Get("/v1/charges/" + first.ID()), "list": revoked.Get("/v1/charges"),
		"key": revoked.Get("/v1/idempotency_keys/k"),
	} {
		if a.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s, want 401", name, a.Code, a.Body)
		}
	}
	if a := c.Charge("k", twenty); !a.Replayed() || string(a.Body) != string(first.Body) {
		t.Errorf("the account's other key: %d %s, want a replay", a.Code, a.Body)
	}
	w.sim.mustHave(t, 1)
}
