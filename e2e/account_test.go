package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"paidonce/api/apitest"
)

// Another account at the provider: what was sent to one is never sent to the other, nor ended by
// its words.

// simOf starts a provider of its own that plays an account.
func (w *world) simOf(account string) *sim {
	w.t.Helper()
	s := &sim{ledger: w.t.TempDir() + "/ledger.jsonl"}
	w.runSimOf(s, "127.0.0.1:0", account)
	return s
}

func (w *world) runSimOf(s *sim, listen, account string) {
	w.t.Helper()
	s.proc = w.start("stripesim", w.command(nil, "stripesim", "--listen", listen, "--ledger",
		s.ledger, "--fsync=false", "--account", account))
	s.url = "http://" + s.await(`Stripe simulator on http://(\S+)`)[1]
}

// at is the environment of a process that works for the account of a provider.
func at(s *sim, more ...string) []string {
	return append([]string{"STRIPE_API_BASE=" + s.url, "STRIPE_API_KEY=sk_test_theOtherSecret"},
		more...)
}

const (
	newsOfA  = "whsec_ofA"
	newsOfB  = "whsec_ofB"
	inbox    = "PAIDONCE_WORKERS=inbox"
	bothHear = "STRIPE_WEBHOOK_SECRET=" + newsOfB + "," + newsOfA
)

// tellTo lets a provider send its events to a server, signed with a secret of its own.
func (s *sim) tellTo(p *proc, secret string) {
	s.t.Helper()
	s.control(http.MethodPost, "webhooks", map[string]any{
		"endpoints": []map[string]string{{
			"url": p.url + "/v1/provider/stripe/webhooks", "secret": secret,
		}},
	}, nil)
}

// send delivers an event about an object as it is now.
func (s *sim) send(kind, object string) {
	s.t.Helper()
	s.control(http.MethodPost, "webhooks/send", map[string]any{"type": kind, "object": object}, nil)
}

// refused checks that a command ends at once, with one line that names what it must and no key.
func (w *world) refused(env []string, wants []string, args ...string) {
	w.t.Helper()
	var r result
	eventually(w.t, "the provider answers in time", func() bool {
		r = w.run(env, args...)
		return !strings.Contains(r.stderr, "no answer in time")
	})
	last := r.stderr[strings.LastIndex(strings.TrimSuffix(r.stderr, "\n"), "\n")+1:]
	if r.code != 1 || !strings.HasPrefix(last, "paidonce: ") ||
		strings.Contains(r.stderr, "Secret") {
		w.t.Errorf("%v: exit code %d\n%s", args, r.code, r.stderr)
	}
	for _, want := range wants {
		if !strings.Contains(last, want) {
			w.t.Errorf("%v does not name %q: %s", args, want, last)
		}
	}
}

// parks sends a request until an operator has to decide; a server that has just started may take a
// moment for it.
func (w *world) parks(send func() apitest.Answer) {
	w.t.Helper()
	eventually(w.t, "the operation is parked", func() bool {
		got := send()
		if got.Code != http.StatusServiceUnavailable && got.Error().Code != "operation_parked" {
			w.t.Fatalf("%d %s, want it parked", got.Code, got.Body)
		}
		return got.Error().Code == "operation_parked"
	})
}

// lostAt leaves a charge under key k without an outcome at the world's own provider, which has it.
func (w *world) lostAt(p *proc, k string) {
	w.t.Helper()
	w.sim.arm(1, fault{"type": "drop_after"})
	if a := w.client(p).Charge(k, twenty); a.Code != http.StatusServiceUnavailable {
		w.t.Fatalf("a charge whose answer was lost: %d %s", a.Code, a.Body)
	}
}

type shownAccounts struct {
	Accounts []struct {
		Account    string
		Livemode   bool
		Current    bool
		Unfinished int
	}
	Key *struct {
		Account        string
		Known, Current bool
	}
}

func (w *world) shown(env ...string) (s shownAccounts) {
	w.t.Helper()
	r := w.run(env, "provider", "show", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil || r.code != 0 {
		w.t.Fatalf("provider show: %v %+v", err, r)
	}
	return s
}

func TestAnotherAccountGetsNothingOfTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bothHear)
	b := w.simOf("acct_b")
	a := w.serve()
	if got := w.client(a).Charge("before", twenty); got.Code != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", got.Code, got.Body)
	}
	w.lostAt(a, "k")
	a.kill()
	a.wait()
	lost := w.sim.charges()[1].ID

	wants := []string{
		"acct_simulated (test mode)", "acct_b (test mode)", "1 operations have no outcome",
		"paidonce provider switch",
	}
	for _, args := range [][]string{{"serve"}, {"reconcile"}, {"audit", "--since", "1h"}} {
		w.refused(at(b), wants, args...)
	}
	if s := w.shown(at(b)...); len(s.Accounts) != 1 || !s.Accounts[0].Current ||
		s.Accounts[0].Unfinished != 1 || s.Key.Known || s.Key.Account != "acct_b" {
		t.Errorf("before the switch: %+v", s)
	}
	if r := w.run(at(b), "provider", "switch"); r.code != 0 || !strings.Contains(r.stdout,
		"acct_b") || !strings.Contains(r.stdout, "1 operations without an outcome") {
		t.Fatalf("switch: %+v", r)
	}
	if s := w.shown(at(b)...); len(s.Accounts) != 2 || s.Accounts[0].Current ||
		!s.Accounts[1].Current || !s.Key.Current {
		t.Errorf("after the switch: %+v", s)
	}
	w.refused(nil, []string{"acct_b (test mode)", "acct_simulated (test mode)"}, "serve")

	second := w.serve(at(b, inbox)...)
	for range 3 {
		w.parks(func() apitest.Answer { return w.client(second).Charge("k", twenty) })
	}
	if r := w.run(at(b), "reconcile"); r.code != 3 {
		t.Errorf("reconcile: %+v", r)
	}
	if r := w.must("ops", "list"); !strings.Contains(r.stdout, "acct_simulated (test mode)") ||
		!strings.Contains(r.stdout, "acct_b (test mode)") {
		t.Errorf("why it is parked: %s", r.stdout)
	}
	if n := b.stats(); n.ChargeRequests != 0 || n.Charges != 0 {
		t.Fatalf("the other account was sent something: %+v", n)
	}
	// The first account's news, signed with its own secret, ends it.
	w.sim.tellTo(second, newsOfA)
	w.sim.send("charge.succeeded", lost)
	var settled string
	eventually(t, "the first account's news settles the operation", func() bool {
		got := w.client(second).Charge("k", twenty)
		settled = string(got.Body)
		return got.Code == http.StatusCreated && got.Replayed()
	})
	if !strings.Contains(settled, lost) {
		t.Errorf("the answer names another charge than %s: %s", lost, settled)
	}
	if n := querySQL[int](t, w.dbURL,
		"SELECT count(*)::integer FROM outbox WHERE type = 'charge.succeeded'"); n != 2 {
		t.Errorf("%d events of two charges", n)
	}
	// New keys are for the new account; the audit of that leaves out what is not its.
	if got := w.client(second).Charge("after", twenty); got.Code != http.StatusCreated {
		t.Errorf("got %d %s, want 201", got.Code, got.Body)
	}
	r := w.run(at(b), "audit", "--since", "1h")
	if r.code != 0 ||
		!strings.Contains(r.stdout, "1 charges at the provider, 1 here, 0 differences") ||
		!strings.Contains(r.stdout, "2 charges of other accounts") {
		t.Errorf("audit: %+v", r)
	}
	// Nor are the records of one account read for the other's.
	if r := w.run(at(b), "provider", "recover", "--since", "1h"); r.code != 0 ||
		!strings.Contains(r.stdout, "rebuilt 0 charges") {
		t.Errorf("provider recover: %+v", r)
	}
	w.refused(nil, []string{"acct_b (test mode)", "acct_simulated (test mode)"}, "provider",
		"recover", "--since", "1h")
	w.sim.mustHave(t, 2)
	b.mustHave(t, 1)
}

// A token that the other account does not know must not end an operation of the first as a failure.
func TestAnotherAccountDoesNotKnowTheToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.simOf("acct_b")
	a := w.serve()
	w.sim.arm(1, fault{"type": "drop_after"})
	request := `{"amount":2000,"currency":"usd","source":"tok_visa"}`
	if got := w.client(a).Charge("k", request); got.Code != http.StatusServiceUnavailable {
		t.Fatalf("got %d %s, want 503", got.Code, got.Body)
	}
	a.kill()
	b.control(http.MethodPost, "faults", map[string]any{"match": map[string]any{
		"method": "POST", "path": "/v1/charges",
	},
		"fault": map[string]any{"type": "status_before", "status": 400,
			"body": `{"error":{"type":"invalid_request_error","code":"resource_missing","message":"No such token"}}`}}, nil)
	w.run(at(b), "provider", "switch")
	second := w.serve(at(b)...)
	w.parks(func() apitest.Answer { return w.client(second).Charge("k", request) })
	if n := b.stats(); n.ChargeRequests != 0 {
		t.Errorf("%+v", n)
	}
	// An operator ends it with the key of its own account, whichever is the current one.
	op := querySQL[string](t, w.dbURL, "SELECT operation_id FROM idempotency_keys WHERE key = 'k'")
	if r := w.run(at(b), "ops", "retry", op, "--reason", "x"); r.code != 1 ||
		!strings.Contains(r.stderr, "acct_simulated") {
		t.Errorf("retry with the key of the other account: %+v", r)
	}
	if r := w.run(at(b), "ops", "resolve", op, "--as", "failed", "--reason", "x"); r.code != 1 ||
		!strings.Contains(r.stderr, "acct_simulated") {
		t.Errorf("resolve with the key of the other account: %+v", r)
	}
	if r := w.run(nil, "ops", "retry", op, "--reason", "x"); r.code != 0 ||
		!strings.Contains(r.stdout, "get 201") {
		t.Errorf("retry with its own key: %+v", r)
	}
	if got := w.client(second).Charge("k", request); got.Code != http.StatusCreated ||
		!got.Replayed() {
		t.Errorf("got %d %s, want 201", got.Code, got.Body)
	}
	w.sim.mustHave(t, 1)
}

// What news of the former account must not do: end an operation that it does not match.
func TestNewsOfTheFormerAccountHasToMatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bothHear, "STRIPE_FLOW=payment_intents")
	b := w.simOf("acct_b")
	a := w.serve()
	confirm := map[string]any{
		"match": map[string]any{"method": "POST", "path": "/v1/payment_intents/"}, "count": 1,
		"fault": fault{"type": "drop_after"},
	}
	w.sim.control(http.MethodPost, "faults", confirm, nil)
	if got := w.client(a).Charge("k", twenty); got.Code != http.StatusServiceUnavailable {
		t.Fatalf("got %d %s, want 503", got.Code, got.Body)
	}
	a.kill()
	w.run(at(b), "provider", "switch")
	second := w.serve(at(b, inbox, "STRIPE_FLOW=payment_intents")...)
	w.sim.tellTo(second, newsOfA)
	lost := w.sim.charges()[0].ID
	// Our records say another amount than what happened there: the event is not believed.
	execSQL(t, w.dbURL,
		`UPDATE idempotency_keys SET params = convert_to(replace(convert_from(params, 'UTF8'), '"amount":2000', '"amount":2001'), 'UTF8') WHERE key = 'k'`)
	w.sim.send("charge.succeeded", lost)
	eventually(t, "the news was looked at", func() bool {
		return querySQL[bool](t, w.dbURL, "SELECT coalesce(bool_or(last_error LIKE '%asked for "+
			"were 2001%'), false) FROM provider_events")
	})
	if got := w.client(second).Charge("k", twenty); got.Code != http.StatusInternalServerError &&
		got.Code != http.StatusServiceUnavailable {
		t.Errorf("got %d %s, want 500 or 503", got.Code, got.Body)
	}
	execSQL(t, w.dbURL,
		`UPDATE idempotency_keys SET params = convert_to(replace(convert_from(params, 'UTF8'), '"amount":2001', '"amount":2000'), 'UTF8') WHERE key = 'k'`)
	w.sim.send("charge.succeeded", lost)
	eventually(t, "the intent's charge settles the operation", func() bool {
		got := w.client(second).Charge("k", twenty)
		return got.Code == http.StatusCreated && got.Replayed() &&
			strings.Contains(string(got.Body), lost)
	})
	if n := b.stats(); n.ChargeRequests != 0 || n.Charges != 0 {
		t.Errorf("%+v", n)
	}
}

// Captures and refunds belong to the account of their charge.
func TestCapturesAndRefundsStayWithTheirAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bothHear)
	b := w.simOf("acct_b")
	a := w.serve()
	c := w.client(a)
	authorised := `{"amount":2000,"currency":"usd","source":"tok_visa","capture":false}`
	ids := map[string]string{
		"idle": c.Charge("idle", authorised).ID(), "capture": c.Charge("capture", authorised).ID(),
		"refund": c.Charge("refund", twenty).ID(), "paid": c.Charge("paid", twenty).ID(),
	}
	drop := func(path string) {
		w.sim.control(http.MethodPost,
			"faults", map[string]any{"match": map[string]any{"method": "POST", "path": path},
				"count": 1, "fault": fault{"type": "drop_after"}}, nil)
	}
	theirs := func(ours string) string {
		return querySQL[string](t, w.dbURL, "SELECT provider_id FROM charges WHERE id = $1", ours)
	}
	drop("/v1/charges/" + theirs(ids["capture"]) + "/capture")
	drop("/v1/refunds")
	captures := func(p *proc, which, key string) apitest.Answer {
		return w.client(p).Post("/v1/charges/"+ids[which]+"/capture", key, "{}")
	}
	refunds := func(p *proc, which, key string) apitest.Answer {
		return w.client(p).Post("/v1/refunds", key,
			fmt.Sprintf(`{"charge":%q,"amount":500}`, ids[which]))
	}
	capture := func(p *proc, which, key string) (int, string) {
		got := captures(p, which, key)
		return got.Code, got.Error().Code
	}
	refund := func(p *proc, which, key string) (int, string) {
		got := refunds(p, which, key)
		return got.Code, got.Error().Code
	}
	if code, _ := capture(a, "capture", "kc"); code != http.StatusServiceUnavailable {
		t.Fatalf("capture %d", code)
	}
	if code, _ := refund(a, "refund", "kr"); code != http.StatusServiceUnavailable {
		t.Fatalf("refund %d", code)
	}
	a.kill()
	w.run(at(b), "provider", "switch")
	second := w.serve(at(b, inbox)...)
	w.parks(func() apitest.Answer { return captures(second, "capture", "kc") })
	w.parks(func() apitest.Answer { return refunds(second, "refund", "kr") })
	if code, problem := capture(second, "idle", "new-c"); code != http.StatusBadRequest ||
		problem != "provider_account_changed" {
		t.Errorf("a capture of the first account's charge: %d %s", code, problem)
	}
	if code, problem := refund(second, "paid", "new-r"); code != http.StatusBadRequest ||
		problem != "provider_account_changed" {
		t.Errorf("a refund of the first account's charge: %d %s", code, problem)
	}
	if n := querySQL[int](t, w.dbURL,
		"SELECT count(*)::integer FROM idempotency_keys WHERE key LIKE 'new-%'"); n != 0 {
		t.Errorf("%d keys were spent", n)
	}
	w.sim.tellTo(second, newsOfA)
	var books struct{ Refunds []struct{ ID string } }
	w.sim.control(http.MethodGet, "ledger", nil, &books)
	w.sim.send("charge.captured", theirs(ids["capture"]))
	w.sim.send("refund.created", books.Refunds[0].ID)
	eventually(t, "the capture is settled by news", func() bool {
		code, _ := capture(second, "capture", "kc")
		return code == http.StatusOK
	})
	eventually(t, "the refund is settled by news", func() bool {
		code, _ := refund(second, "refund", "kr")
		return code == http.StatusCreated
	})
	b.askedForNothing(t)
}

// A charge that waits for its payer at the former account is not asked for at the current one; its
// news ends it. What cannot be looked up otherwise is left alone.
func TestPayersOfTheFormerAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bothHear, "STRIPE_FLOW=payment_intents")
	b := w.simOf("acct_b")
	a := w.serve()
	waits := w.client(a).Charge("waits",
		`{"amount":2000,"currency":"usd","source":"tok_threeDSecureRequired"}`)
	paid := w.client(a).Charge("paid", twenty)
	if waits.Code != http.StatusCreated || !strings.Contains(string(waits.Body),
		`"status":"pending"`) || paid.Code != http.StatusCreated {
		t.Fatalf("%d %s, %d %s", waits.Code, waits.Body, paid.Code, paid.Body)
	}
	a.kill()
	if r := w.run(at(b), "provider", "switch"); !strings.Contains(r.stdout,
		"1 charges that wait for their payer") {
		t.Errorf("%+v", r)
	}
	execSQL(t, w.dbURL, "UPDATE charges SET awaits_at = now() WHERE awaits_at IS NOT NULL")
	if r := w.run(at(b), "reconcile"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if !querySQL[bool](t, w.dbURL,
		"SELECT awaits_at > now() FROM charges WHERE awaits_at IS NOT NULL") {
		t.Error("nobody came to the charge that was due")
	}
	second := w.serve(at(b, inbox)...)
	var books struct {
		Intents []struct{ ID, Status string }
		Charges []struct{ ID string }
	}
	w.sim.control(http.MethodGet, "ledger", nil, &books)
	for _, in := range books.Intents {
		if in.Status == "requires_action" {
			w.sim.control(http.MethodPost, "authenticate",
				map[string]string{"intent": in.ID, "outcome": "succeed"}, nil)
		}
	}
	w.sim.tellTo(second, newsOfA)
	w.sim.control(http.MethodGet, "ledger", nil, &books)
	for _, c := range books.Charges {
		w.sim.send("charge.succeeded", c.ID)
	}
	eventually(t, "the payer's success is learnt", func() bool {
		return strings.Contains(string(w.client(second).Get("/v1/charges/"+waits.ID()).Body),
			`"status":"succeeded"`)
	})
	theirs := querySQL[string](t, w.dbURL, "SELECT provider_id FROM charges WHERE id = $1",
		paid.ID())
	w.sim.control(http.MethodPost, "dispute", map[string]string{"charge": theirs}, nil)
	eventually(t, "the dispute is left alone", func() bool {
		return querySQL[int](t, w.dbURL, "SELECT count(*)::integer FROM provider_events WHERE "+
			"type = 'charge.dispute.created' AND result LIKE '%left alone'") > 0
	})
	b.askedForNothing(t)
}

// askedForNothing fails the test if anything was sent to the provider, or an object asked for. Its
// lists are read at each start.
func (s *sim) askedForNothing(t *testing.T) {
	t.Helper()
	var log struct{ Data []simRequest }
	s.control(http.MethodGet, "requests?limit=1000", nil, &log)
	for _, r := range log.Data {
		if r.Method != http.MethodGet || strings.Count(r.Path, "/") > 2 {
			t.Errorf("the other account was asked %s %s", r.Method, r.Path)
		}
	}
}

// overTLS are the settings of a process that reaches the provider by TLS, as a live key asks for.
func (s *sim) overTLS(t *testing.T) []string {
	t.Helper()
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(to))
	t.Cleanup(proxy.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"STRIPE_API_BASE=" + proxy.URL, "SSL_CERT_FILE=" + file}
}

// The modes of one account are two accounts: what was tried in test mode is not charged in live
// mode.
func TestLiveModeIsAnotherAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.serve()
	w.lostAt(a, "k")
	a.kill()
	live := append(w.sim.overTLS(t), "STRIPE_API_KEY=sk_live_theOtherSecret")
	for _, args := range [][]string{{"serve"}, {"reconcile"}, {"audit", "--since", "1h"}} {
		w.refused(live, []string{"acct_simulated (test mode)", "acct_simulated (live mode)",
			"provider switch"}, args...)
	}
	if r := w.run(live, "provider", "switch", "--json"); r.code != 0 || !strings.Contains(r.stdout,
		`"changed":true`) && !strings.Contains(r.stdout, `"changed": true`) {
		t.Fatalf("%+v", r)
	}
	second := w.serve(live...)
	w.parks(func() apitest.Answer { return w.client(second).Charge("k", twenty) })
	w.sim.mustHave(t, 1)
}

// Nothing was ever sent: another account is as good as the first.
func TestAnUnusedAccountIsLeftWithoutAWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.simOf("acct_b")
	w.serve().kill()
	second := w.serve(at(b)...)
	if got := w.client(second).Charge("k", twenty); got.Code != http.StatusCreated {
		t.Errorf("got %d %s, want 201", got.Code, got.Body)
	}
	w.refused(nil, []string{"acct_b"}, "serve")
}

// A key that may not read accounts, and a provider that has no such path: the newest charge tells.
func TestTheNewestChargeTellsWhoseKeyItIs(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.simOf("acct_b")
			silent := func(s *sim, path string, status int) {
				s.control(http.MethodPost,
					"faults", map[string]any{"match": map[string]any{"method": "GET", "path": path},
						"fault": fault{"type": "status_before", "status": status}}, nil)
			}
			silent(w.sim, "/v1/account", status)
			silent(b, "/v1/account", status)
			a := w.serve()
			// nothing to compare with: the server goes on, and says what is missing
			a.await("Account: read")
			if got := w.client(a).Charge("before", twenty); got.Code != http.StatusCreated {
				t.Fatalf("got %d %s, want 201", got.Code, got.Body)
			}
			w.lostAt(a, "k")
			a.kill()
			a = w.serve() // found: the same account
			if said := a.output(); strings.Contains(said, "Account: read") {
				t.Errorf("it was not looked for: %s", said)
			}
			a.kill()
			for _, args := range [][]string{{"serve"}, {"reconcile"}, {"audit", "--since", "1h"}} {
				w.refused(at(b), []string{"another one, which does not know", "provider switch"},
					args...)
			}
			if n := b.stats(); n.ChargeRequests != 0 {
				t.Errorf("%+v", n)
			}
			// Neither right: nothing tells, so nothing may be sent.
			silent(w.sim, "/v1/charges/", http.StatusForbidden)
			w.refused(nil, []string{"Account: read", "Charges: read"}, "serve")
			w.sim.control(http.MethodDelete, "faults", nil, nil)
			// Once the id may be read, it is kept with what was known.
			w.serve().kill()
			if s := w.shown(); len(s.Accounts) != 1 || s.Accounts[0].Account != "acct_simulated" ||
				!s.Key.Current {
				t.Errorf("%+v", s)
			}
			if r := w.run(at(b), "provider", "switch"); r.code != 0 {
				t.Errorf("%+v", r)
			}
			if r := w.run(at(b), "provider", "switch"); status == http.StatusForbidden &&
				r.code == 0 && !strings.Contains(r.stdout, "already") {
				t.Errorf("once more: %+v", r)
			}
			second := w.serve(at(b)...)
			w.parks(func() apitest.Answer { return w.client(second).Charge("k", twenty) })
		})
	}
}

// A provider that is down when a server starts: what is stored is served, nothing is begun, until
// it has told.
func TestProviderDownAtStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.serve()
	done := w.client(a).Charge("done", twenty)
	w.lostAt(a, "k")
	a.kill()
	execSQL(t, w.dbURL, "UPDATE idempotency_keys SET locked_at = locked_at - interval '1 hour' "+
		"WHERE status = 'in_progress'")
	listen := strings.TrimPrefix(w.sim.url, "http://")
	w.sim.kill()

	p := w.serve("PAIDONCE_WORKERS=reconcile")
	c := w.client(p)
	if got := c.Charge("done", twenty); got.Code != http.StatusCreated || !got.Replayed() {
		t.Errorf("a replay: %d %s", got.Code, got.Body)
	}
	if got := c.Get("/v1/charges/" + done.ID()); got.Code != http.StatusOK {
		t.Errorf("a read: %d %s", got.Code, got.Body)
	}
	if got := c.Charge("done", order(2001)); got.Code != http.StatusUnprocessableEntity {
		t.Errorf("another request under a key that is taken: %d %s", got.Code, got.Body)
	}
	// of k it isn't true that nothing was done
	for key, code := range map[string]string{"new": "provider_unavailable",
		"k": "outcome_unknown"} {
		if got := c.Charge(key, twenty); got.Code != http.StatusServiceUnavailable ||
			got.Error().Code != code || got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: got %d %s, want 503", key, got.Code, got.Body)
		}
	}
	if n := querySQL[int](t, w.dbURL, "SELECT count(*)::integer FROM idempotency_keys"); n != 2 {
		t.Errorf("%d keys: something was begun", n)
	}
	if said := p.output(); strings.Count(said, "nothing new is begun until") != 1 {
		t.Errorf("said other than once: %s", said)
	}
	for _, args := range [][]string{{"reconcile"}, {"audit", "--since", "1h"},
		{"provider", "switch"}} {
		w.refused(nil, []string{"cannot be asked"}, args...)
	}
	w.runSimOf(w.sim, listen, "acct_simulated")
	p.await("charges are taken")
	for _, key := range []string{"new", "k"} {
		if got, _ := until(t, func() *apitest.Client {
			return c
		}, key, twenty); got.Code != http.StatusCreated {
			t.Errorf("%s: got %d %s, want 201", key, got.Code, got.Body)
		}
	}
	if n := len(w.sim.charges()); n != 3 {
		t.Errorf("%d charges for three keys", n)
	}
	w.checkBooks()
}

// The provider that comes up after a server is another one: the server ends, as it would have at
// its start.
func TestAnotherProviderComesUpLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.serve()
	w.lostAt(a, "k")
	a.kill()
	listen := strings.TrimPrefix(w.sim.url, "http://")
	w.sim.kill()
	p := w.serve()
	b := &sim{ledger: t.TempDir() + "/ledger.jsonl"}
	w.runSimOf(b, listen, "acct_b")
	if state := p.wait(); state.ExitCode() != 1 ||
		!strings.Contains(p.output(), "provider switch") {
		t.Errorf("exit code %d: %s", state.ExitCode(), p.output())
	}
	if n := b.stats(); n.ChargeRequests != 0 {
		t.Errorf("%+v", n)
	}
}

// A server with the former key that still runs after the switch begins nothing, and leaves the new
// account's operations alone.
func TestTheFormerServerBeginsNothingAfterTheSwitch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bothHear)
	b := w.simOf("acct_b")
	a := w.serve("PAIDONCE_WORKERS=reconcile,inbox")
	c, other := w.client(a), w.client(w.serve())
	paid := c.Charge("before", twenty)
	if paid.Code != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", paid.Code, paid.Body)
	}
	w.run(at(b), "provider", "switch")
	// The very first claims, before it has noticed anything: the statements themselves are fenced.
	if got := c.Charge("new", twenty); got.Code != http.StatusServiceUnavailable ||
		got.Error().Code != "unavailable" {
		t.Errorf("got %d %s, want 503", got.Code, got.Body)
	}
	if got := other.Post("/v1/refunds", "refund", fmt.Sprintf(`{"charge":%q}`, paid.ID())); got.Code != http.StatusServiceUnavailable || got.Error().Code != "unavailable" {
		t.Errorf("got %d %s, want 503", got.Code, got.Body)
	}
	if got := c.Charge("before", twenty); got.Code != http.StatusCreated || !got.Replayed() {
		t.Errorf("a replay: %d %s", got.Code, got.Body)
	}
	w.sim.mustHave(t, 1)
	if n := querySQL[int](t, w.dbURL, "SELECT count(*)::integer FROM idempotency_keys"); n != 1 {
		t.Errorf("%d keys", n)
	}
	second := w.serve(at(b)...)
	b.arm(1, fault{"type": "drop_after"})
	if got := w.client(second).Charge("of b", twenty); got.Code != http.StatusServiceUnavailable {
		t.Fatalf("got %d %s, want 503", got.Code, got.Body)
	}
	execSQL(t, w.dbURL, "UPDATE idempotency_keys SET next_run_at = now() WHERE key = 'of b'")
	a.await("nothing new is begun")
	if got := c.Charge("of b", twenty); got.Code != http.StatusServiceUnavailable {
		t.Errorf("the former server drives what is not its: %d %s", got.Code, got.Body)
	}
	if n := querySQL[int](t, w.dbURL,
		"SELECT count(*)::integer FROM idempotency_keys WHERE parked_at IS NOT NULL"); n != 0 {
		t.Errorf("the former server parked %d operations of the current account", n)
	}
	// It stores the current account's news for a server that can ask about it.
	b.tellTo(a, newsOfB)
	b.send("charge.succeeded", b.charges()[0].ID)
	hears := w.serve(at(b, inbox)...)
	eventually(t, "the news settles the operation", func() bool {
		got := w.client(hears).Get("/v1/idempotency_keys/of%20b")
		return strings.Contains(string(got.Body), `"status":"completed"`)
	})
	if got := w.client(second).Charge("of b", twenty); got.Code != http.StatusCreated ||
		!got.Replayed() {
		t.Errorf("got %d %s, want 201", got.Code, got.Body)
	}
	if got := w.client(second).Charge("new", twenty); got.Code != http.StatusCreated {
		t.Errorf("got %d %s, want 201", got.Code, got.Body)
	}
	b.mustHave(t, 2)
	w.sim.mustHave(t, 1)
}

// Charges of before there were accounts belong to the one that knows them.
func TestChargesOfBeforeThereWereAccounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.simOf("acct_b")
	a := w.serve()
	if got := w.client(a).Charge("old", twenty); got.Code != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", got.Code, got.Body)
	}
	w.lostAt(a, "k")
	a.kill()
	forget := func() {
		execSQL(t, w.dbURL, "UPDATE charges SET provider_account = NULL",
			"UPDATE installation SET provider_account = NULL", "DELETE FROM provider_accounts",
			`UPDATE idempotency_keys SET params = convert_to(replace(convert_from(params, 'UTF8'), '"account":1,', ''), 'UTF8') WHERE status = 'in_progress'`)
	}
	forget()
	// it does not know the newest of them
	w.refused(at(b), []string{"acct_b", "provider switch"}, "serve")
	if r := w.run(at(b), "provider", "switch"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if s := w.shown(at(b)...); len(s.Accounts) != 2 || s.Accounts[0].Account != "" ||
		s.Accounts[0].Unfinished != 1 || s.Accounts[1].Account != "acct_b" ||
		!s.Accounts[1].Current {
		t.Errorf("%+v", s)
	}
	second := w.serve(at(b)...)
	w.parks(func() apitest.Answer { return w.client(second).Charge("k", twenty) })
	second.kill()
	execSQL(t, w.dbURL, "UPDATE idempotency_keys SET parked_at = NULL")
	forget()
	first := w.serve()
	if got, _ := until(t, func() *apitest.Client {
		return w.client(first)
	}, "k", twenty); got.Code != http.StatusCreated {
		t.Errorf("got %d %s, want 201", got.Code, got.Body)
	}
	w.sim.mustHave(t, 2)
	if n := b.stats(); n.ChargeRequests != 0 {
		t.Errorf("%+v", n)
	}
}
