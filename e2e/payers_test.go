package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	stripe "github.com/stripe/stripe-go/v76"
)

// payersGuide needs another flow than the other guides, so TestGuides leaves it out.
const payersGuide = "../docs/guides/payers.md"

// intentWorld is a world whose charges go through payment intents, with a server to which the
// provider's events go.
func intentWorld(t *testing.T, env ...string) (*world, *proc) {
	t.Helper()
	w := newWorld(t, append([]string{
		"STRIPE_FLOW=payment_intents", "STRIPE_WEBHOOK_SECRET=whsec_payers", "PAIDONCE_WORKERS=inbox",
	}, env...)...)
	p := w.serve()
	w.sim.tellTo(p, "whsec_payers")
	return w, p
}

// The commands of the guide are run as they stand there, twice.
func TestPayersGuide(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl", "openssl", "sed", "grep"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	text, err := os.ReadFile(payersGuide)
	if err != nil {
		t.Fatal(err)
	}
	blocks := fence.FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 9 || !strings.HasPrefix(blocks[0][2], onPath) {
		t.Fatalf("the guide has %d blocks", len(blocks))
	}
	w, p := intentWorld(t)
	for _, round := range []string{"unused", "used"} {
		t.Run(round, func(t *testing.T) { follow(t, w, p, blocks) })
	}
	if net := w.sim.net(); net != 2*2000 {
		t.Errorf("the guide moves %d", net)
	}
}

// What stripe-go has of payment intents alone can be sent with a charge, and read from it.
func TestStripeGoPayers(t *testing.T) {
	t.Parallel()
	w, p := intentWorld(t)
	sc, _ := w.stripeGo(p, 2)
	wanted := chargeOf("waits", 2000, "tok_threeDSecure2Required")
	wanted.AddExtra("return_url", "https://shop.example/orders/7")
	c, err := sc.Charges.New(wanted)
	if err != nil || c.Status != stripe.ChargeStatusPending || c.Paid ||
		!strings.Contains(string(c.LastResponse.RawJSON), `"redirect_to_url":{"url":"`+w.sim.url) {
		t.Fatalf("got %+v, %v", c, err)
	}
	away := chargeOf("away", 2000, "tok_threeDSecure2Required")
	away.AddExtra("off_session", "true")
	_, err = sc.Charges.New(away)
	if e := asError(err); e.HTTPStatusCode != http.StatusPaymentRequired ||
		e.Code != stripe.ErrorCodeAuthenticationRequired {
		t.Errorf("got %v", err)
	}
}

// Neither what a payer goes on with, nor the address that leads there, is told anywhere but in the
// answers to the account's own callers.
func TestPayersSecretsAreNotTold(t *testing.T) {
	t.Parallel()
	w, p := intentWorld(t, "PAIDONCE_LOG_LEVEL=debug")
	c := w.client(p)
	const secure = `{"amount":2000,"currency":"usd","source":"tok_threeDSecure2Required"`
	ids := []string{
		c.Charge("redirect", secure+`,"return_url":"https://shop.example/back"}`).ID(),
		c.Charge("secret", secure+`}`).ID(),
	}
	w.sim.arm(1, fault{"type": "garbage"})
	c.Charge("lost", secure+`}`)
	c.Charge("lost", secure+`}`)
	var said strings.Builder
	tell := func(args ...string) {
		r := w.run(nil, args...)
		said.WriteString(r.stdout + r.stderr)
	}
	var intents []string
	for _, id := range ids {
		intent := querySQL[string](t, w.dbURL, "SELECT intent_id FROM charges WHERE id = $1", id)
		intents = append(intents, intent)
		w.sim.send("payment_intent.requires_action", intent)
		tell("ops", "show", querySQL[string](t, w.dbURL, "SELECT operation_id FROM charges WHERE id = $1", id))
	}
	w.sim.control(http.MethodPost, "authenticate", map[string]any{"intent": intents[1], "outcome": "succeed"}, nil)
	eventually(t, "the payment is known", func() bool {
		return strings.Contains(string(c.Get("/v1/charges/"+ids[1]).Body), `"status":"succeeded"`)
	})
	tell("reconcile")
	tell("inbox", "list")
	for _, asJSON := range []string{"", "--json"} {
		args := []string{"inbox", "show", querySQL[string](t, w.dbURL,
			"SELECT id FROM provider_events WHERE payload IS NOT NULL AND type LIKE 'payment_intent.%' LIMIT 1")}
		if asJSON != "" {
			args = append(args, asJSON)
		}
		tell(args...)
	}
	said.Write(c.Get("/v1/events?limit=100").Body)
	said.WriteString(p.output())
	for _, secret := range intents {
		secret += "_secret_" + strings.TrimPrefix(secret, "pi_3")
		if strings.Contains(said.String(), secret) {
			t.Errorf("%s is told in\n%s", secret, said.String())
		}
	}
	if !strings.Contains(said.String(), "_secret_…") {
		t.Error("nothing was shown that has a secret")
	}
}
