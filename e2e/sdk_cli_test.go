package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// asClient is the environment of `paidonce charges`.
func (w *world) asClient(p *proc) []string {
	return []string{
		"PAIDONCE_URL=" + p.url, "PAIDONCE_API_KEY=" + w.apiKey, "DATABASE_URL=", "STRIPE_API_KEY=",
	}
}

func TestChargesCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := w.asClient(w.serve())
	create := []string{
		"charges", "create", "--amount", "2000", "--currency", "usd", "--source", "tok_visa",
		"--description", "two\nlines", "--metadata", "order=1", "--key", "order-1",
		"--statement-descriptor", "BOOKSHOP", "--shipping", "name=Jenny",
		"--shipping", "address.city=London", "--shipping", "address.country=GB",
	}
	first := w.run(env, create...)
	again := w.run(env, append(create, "--json")...)
	var charge struct {
		ID       string
		Metadata map[string]string
		Shipping struct {
			Name    string
			Address struct{ City, Country string }
		}
		StatementDescriptor string `json:"statement_descriptor"`
	}
	sent := &charge.Shipping
	if err := json.Unmarshal([]byte(again.stdout), &charge); err != nil || first.code != 0 ||
		charge.Metadata["order"] != "1" || charge.StatementDescriptor != "BOOKSHOP" ||
		sent.Name != "Jenny" || sent.Address.City != "London" || sent.Address.Country != "GB" {
		t.Fatalf("%+v %+v %v", first, again, err)
	}
	if !strings.Contains(first.stdout, charge.ID+"  2000") || !strings.Contains(first.stdout,
		"succeeded") || !strings.Contains(first.stdout, "two lines") || first.stderr != "" {
		t.Errorf("%+v", first)
	}
	if got := w.run(env, "charges", "get", charge.ID); got.stdout != first.stdout {
		t.Errorf("%q, want %q", got.stdout, first.stdout)
	}
	keyless := w.run(env, "charges", "create", "--amount", "100", "--currency", "usd", "--customer",
		"cus_42", "--hold")
	made := regexp.MustCompile(`--key (\S+)`).FindStringSubmatch(keyless.stderr)
	if keyless.code != 0 || made == nil || !strings.Contains(keyless.stdout, "authorised") {
		t.Fatalf("%+v", keyless)
	}
	repeated := w.run(env, "charges", "create", "--amount", "100", "--currency", "usd",
		"--customer", "cus_42", "--hold", "--key", made[1])
	if repeated.stdout != keyless.stdout {
		t.Errorf("%q, want %q", repeated.stdout, keyless.stdout)
	}
	list := w.run(env, "charges", "list", "--limit", "1")
	more := regexp.MustCompile(`--starting-after (\S+)`).FindStringSubmatch(list.stderr)
	if list.code != 0 || strings.Count(list.stdout, "\n") != 2 || more == nil {
		t.Fatalf("%+v", list)
	}
	if rest := w.run(env, "charges", "list", "--starting-after", more[1]); !strings.Contains(rest.stdout, charge.ID) || rest.stderr != "" {
		t.Errorf("%+v", rest)
	}
	var page struct{ Data []struct{ ID string } }
	if l := w.run(env, "charges", "list", "--json"); json.Unmarshal([]byte(l.stdout),
		&page) != nil || len(page.Data) != 2 {
		t.Errorf("%+v", l)
	}
	w.sim.mustHave(t, 2)
}

// What needs the flow of payment intents is sent, and the command says where the payer goes on.
func TestChargesCommandPayers(t *testing.T) {
	t.Parallel()
	w, p := intentWorld(t)
	env := w.asClient(p)
	pay := func(more ...string) result {
		return w.run(env, append([]string{
			"charges", "create", "--amount", "2000", "--currency", "eur", "--source",
			"tok_threeDSecure2Required", "--statement-descriptor-suffix", "ORDER 7", "--key",
		}, more...)...)
	}
	waits := pay("waits", "--return-url", "https://shop.example/orders/7")
	if waits.code != 0 || !strings.Contains(waits.stdout, "  pending  ") ||
		!strings.HasPrefix(waits.stderr, "The payer has to go on at "+w.sim.url) {
		t.Errorf("%+v", waits)
	}
	var charge struct {
		Suffix string `json:"statement_descriptor_suffix"`
		Next   struct {
			Type string
		} `json:"next_action"`
	}
	again := pay("waits", "--return-url", "https://shop.example/orders/7", "--json")
	if err := json.Unmarshal([]byte(again.stdout), &charge); err != nil ||
		charge.Suffix != "ORDER 7" || charge.Next.Type != "redirect_to_url" {
		t.Errorf("%+v %v", again, err)
	}
	away := pay("away", "--off-session")
	if away.code != 1 || !strings.Contains(away.stderr, "authentication_required") {
		t.Errorf("%+v", away)
	}
	if net := w.sim.net(); net != 0 {
		t.Errorf("%d were moved", net)
	}
}

// Intents by the command line: each command may be repeated with its key, and says what comes next.
func TestIntentsCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	env := w.asClient(w.serve())
	run := func(words string, more ...string) result {
		return w.run(env, append(append([]string{"intents"}, strings.Fields(words)...), more...)...)
	}
	var intent struct {
		ID, Status, Description string
		Metadata                map[string]string
		Reference               string
		AmountReceived          int `json:"amount_received"`
	}
	must := func(status string, r result) {
		t.Helper()
		if err := json.Unmarshal([]byte(r.stdout), &intent); err != nil || r.code != 0 ||
			intent.Status != status {
			t.Fatalf("%+v, %v; want %s", r, err, status)
		}
	}
	create := "create --amount 2000 --currency usd --types card --reference order-7 " +
		"--metadata order=7 --key i-1 --hold"
	first := run(create, "--description", "two\nlines")
	must("requires_payment_method", run(create, "--description", "two\nlines", "--json"))
	id := intent.ID
	if first.code != 0 || first.stderr != "" || !strings.Contains(first.stdout, id+"  2000") ||
		!strings.Contains(first.stdout, "two lines") || intent.Metadata["order"] != "7" ||
		intent.Reference != "order-7" {
		t.Errorf("%+v %+v", first, intent)
	}
	declined := run("confirm " + id + " --payment-method pm_card_chargeDeclined --key c-1")
	if declined.code != 1 || !strings.Contains(declined.stderr, "card_declined") {
		t.Errorf("%+v", declined)
	}
	if got := run("get " + id); !strings.Contains(got.stdout, "declined") {
		t.Errorf("%+v does not say why", got)
	}
	for range 2 {
		must("requires_capture", run("confirm "+id+" --payment-method pm_card_visa --key c-2 --json"))
		must("succeeded", run("capture "+id+" --amount-to-capture 700 --key t-1 --json"))
	}
	if intent.AmountReceived != 700 {
		t.Errorf("%+v", intent)
	}
	again := run("cancel " + id + " --key x-1")
	if again.code != 1 || !strings.Contains(again.stderr, "payment_intent_unexpected_state") {
		t.Errorf("%+v", again)
	}
	keyless := run("create --amount 100 --currency usd --json")
	if must("requires_payment_method", keyless); !strings.Contains(keyless.stderr, "--key ") {
		t.Errorf("%+v names no key", keyless)
	}
	must("canceled", run("cancel "+intent.ID+" --cancellation-reason abandoned --key x-2 --json"))
	list := run("list --limit 1")
	more := regexp.MustCompile(`--starting-after (\S+)`).FindStringSubmatch(list.stderr)
	if list.code != 0 || strings.Count(list.stdout, "\n") != 2 || more == nil {
		t.Fatalf("%+v", list)
	}
	if rest := run("list --starting-after " + more[1]); !strings.Contains(rest.stdout, id) ||
		rest.stderr != "" {
		t.Errorf("%+v", rest)
	}
	for words, says := range map[string]string{
		"get pi_none": "paidonce intents list", "create --amount 1": "--currency is required",
		"get": "--help", "confirm pi_none --key n": "paidonce intents list",
		"create --amount 1 --currency usd --metadata x": "NAME=VALUE",
	} {
		if r := run(words); r.code == 0 || !strings.Contains(r.stderr, says) {
			t.Errorf("%s: %+v", words, r)
		}
	}
	if net := w.sim.net(); net != 700 {
		t.Errorf("%d were moved", net)
	}
}

// Each error is one line that says what to do next.
func TestChargesCommandErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve()
	env := w.asClient(p)
	pay := func(env []string, more ...string) result {
		return w.run(env, append([]string{"charges", "create", "--amount", "2000", "--currency",
			"usd", "--source", "tok_visa", "--wait", "1s", "--key", "k"}, more...)...)
	}
	if r := pay(env); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	for name, tc := range map[string]struct {
		r    result
		code int
		says string
	}{
		"reused": {pay(env, "--amount", "1"), 1, "repeat it exactly as it was"},
		"declined": {
			pay(env, "--key", "d", "--source", "tok_chargeDeclined"), 1,
			"try another card under a new --key; the charge: paidonce charges get ch_",
		},
		"parameter":   {pay(env, "--key", "p", "--amount", "many"), 1, "parameter_invalid_integer"},
		"metadata":    {pay(env, "--metadata", "x"), 2, "NAME=VALUE"},
		"not there":   {w.run(env, "charges", "get", "ch_none"), 1, "paidonce charges list"},
		"no argument": {w.run(env, "charges", "get"), 2, "--help"},
		"wrong key": {
			pay(append(env, "PAIDONCE_API_KEY=sk_wrong")), 1, "paidonce apikeys create",
		},
		"no key": {pay(append(env, "PAIDONCE_API_KEY=")), 1, "PAIDONCE_API_KEY is not set"},
		"no URL": {pay(append(env, "PAIDONCE_URL=localhost:8080")), 1, "has to be a URL"},
		"no server": {
			pay(append(env, "PAIDONCE_URL=http://127.0.0.1:1"), "--key", "n"), 1,
			"repeat the command with --key n",
		},
		"no Paidonce": {
			pay(append(env, "PAIDONCE_URL="+p.url+"/elsewhere"), "--key", "x"), 1,
			"check PAIDONCE_URL",
		},
	} {
		if tc.r.code != tc.code || !strings.Contains(tc.r.stderr, tc.says) ||
			strings.Count(tc.r.stderr, "\n") != 1 || tc.r.stdout != "" {
			t.Errorf("%s: %+v, want exit code %d and %q", name, tc.r, tc.code, tc.says)
		}
	}
	w.sim.control("DELETE", "faults", nil, nil)
	w.sim.arm(1, fault{"type": "drop_after"})
	if r := w.run(env, "charges", "create", "--amount", "300", "--currency", "usd", "--source",
		"tok_visa", "--key", "lost"); r.code != 0 || !strings.Contains(r.stdout, "succeeded") {
		t.Errorf("a lost answer: %+v", r)
	}
}
