package charges_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/api/apitest"
	"paidonce/charges"
	"paidonce/internal/shop"
	"paidonce/internal/world"
	"paidonce/problem"
	"paidonce/provider/stripesim"
)

// secure is a charge of a card whose payer has to authenticate, with more JSON members.
func secure(members string) string {
	return `{"amount":2000,"currency":"usd","source":"tok_threeDSecure2Required"` + members + `}`
}

const back = `,"return_url":"https://shop.example/orders/7?a=b#c"`

// shownAction is what a charge says of its payer.
type shownAction struct {
	ID, Status string
	NextAction *struct {
		Type          string
		PaymentIntent string                `json:"payment_intent"`
		ClientSecret  string                `json:"client_secret"`
		RedirectToURL *struct{ URL string } `json:"redirect_to_url"`
	} `json:"next_action"`
	FailureCode *string `json:"failure_code"`
}

func action(a apitest.Answer) (c shownAction) {
	a.JSON(&c)
	return c
}

// leaked fails the test if an event, or anything else that is not the account's own answer, has a
// secret of the charge's.
func leaked(t *testing.T, w *world.World, secrets ...string) {
	t.Helper()
	for _, secret := range append(secrets, "_secret_", "/bank/") {
		for _, where := range []string{
			`SELECT count(*) FROM outbox WHERE strpos(convert_from(payload, 'UTF8'), $1) > 0`,
			`SELECT count(*) FROM operation_log l WHERE strpos(l::text, $1) > 0`,
			`SELECT count(*) FROM idempotency_keys WHERE strpos(last_error, $1) > 0`,
		} {
			if n := w.Count(where, secret); n != 0 {
				t.Errorf("%q is in %d rows: %s", secret, n, where)
			}
		}
	}
}

// Whoever charges learns how the payer goes on: in the answer, in its replay, and from the charge
// as long as it waits. Nobody else does.
func TestPayersGoOn(t *testing.T) {
	t.Parallel()
	for _, form := range []bool{false, true} {
		for _, returns := range []bool{true, false} {
			t.Run(fmt.Sprintf("form %t, return_url %t", form, returns), func(t *testing.T) {
				t.Parallel()
				s := shop.New(world.NewIntents(t))
				charge := func() apitest.Answer {
					members, fields := "", url.Values{
						"amount": {"2000"}, "currency": {"usd"}, "source": {"tok_threeDSecure2Required"},
					}
					if returns {
						members = back
						fields.Set("return_url", "https://shop.example/orders/7?a=b#c")
					}
					if form {
						return s.ChargeForm("k", fields.Encode())
					}
					return s.Charge("k", secure(members))
				}
				first := charge()
				apitest.Created(t, first)
				apitest.Replays(t, first, charge())
				told := action(first)
				path := "/v1/charges/" + told.ID
				for name, c := range map[string]shownAction{"answer": told, "GET": action(s.Get(path))} {
					n := c.NextAction
					if c.Status != "pending" || n == nil || !strings.HasPrefix(n.PaymentIntent, "pi_") {
						t.Fatalf("%s: %+v, %+v", name, c, n)
					}
					if !returns {
						if n.Type != "use_stripe_sdk" || n.RedirectToURL != nil ||
							!strings.HasPrefix(n.ClientSecret, n.PaymentIntent+"_secret_") {
							t.Errorf("%s: %+v; want a client secret", name, n)
						}
					} else if n.Type != "redirect_to_url" || n.ClientSecret != "" ||
						n.RedirectToURL == nil || !strings.Contains(n.RedirectToURL.URL, n.PaymentIntent) {
						t.Errorf("%s: %+v; want an address and no more", name, n)
					}
				}
				if a := s.B.Get(path); a.Code != http.StatusNotFound {
					t.Errorf("another account got %d %s", a.Code, a.Body)
				}
				leaked(t, s.World, told.ID+"_none")
				if got := string(s.Get("/v1/events").Body); !strings.Contains(got, "charge.pending") ||
					!strings.Contains(got, `"next_action":{"type":`) {
					t.Errorf("the events are %s", got)
				}
				authenticate(s.World, t, "succeed")
				s.Deliver("evt_1", "payment_intent.succeeded", told.NextAction.PaymentIntent)
				s.Process()
				if c := action(s.Get(path)); c.Status != "succeeded" || c.NextAction != nil {
					t.Errorf("afterwards: %+v", c)
				}
				if n := s.World.Count(
					`SELECT count(*) FROM charges WHERE next_action IS NOT NULL`); n != 0 {
					t.Error("the secret is kept after the wait")
				}
				apitest.Replays(t, first, charge())
				leaked(t, s.World, told.ID+"_none")
				s.World.CheckRecords(1)
			})
		}
	}
}

// Where the charge is one call, no payer is asked: both parameters are refused, before any work.
func TestPayersNeedIntents(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	for param, members := range map[string]string{
		"return_url": back, "off_session": `,"off_session":true`,
	} {
		a := s.Charge("k", secure(members))
		apitest.Wants(t, a, http.StatusBadRequest, "parameter_invalid", param)
		if !strings.Contains(a.Error().Message, "STRIPE_FLOW=payment_intents") {
			t.Errorf("%s: %s does not say why", param, a.Error().Message)
		}
	}
	apitest.Wants(t, s.Charge("k", secure(`,"off_session":false`)),
		http.StatusBadRequest, "parameter_invalid", "off_session")
	apitest.Created(t, s.Charge("k", shop.Twenty)) // the key was not spent
	s.World.CheckRecords(1)
}

// A payer who is not there cannot authenticate: that is a decline, and waits for nobody.
func TestOffSession(t *testing.T) {
	t.Parallel()
	s := shop.New(world.NewIntents(t))
	first := s.Charge("k", secure(`,"off_session":true`))
	apitest.Wants(t, first, http.StatusPaymentRequired, "authentication_required", "")
	if p := first.Error(); p.DeclineCode != "authentication_required" || p.Type != "card_error" {
		t.Errorf("got %+v", p)
	}
	apitest.Replays(t, first, s.Charge("k", secure(`,"off_session":true`)))
	if c := action(s.Get("/v1/charges/" + first.Error().Charge)); c.Status != "failed" || c.NextAction != nil {
		t.Errorf("got %+v", c)
	}
	apitest.Wants(t, s.Charge("k", secure("")), http.StatusUnprocessableEntity, "idempotency_key_reused", "")
	apitest.Created(t, s.ChargeForm("f", "amount=2000&currency=usd&source=tok_visa&off_session=true"))
	if n := s.World.Count(`SELECT count(*) FROM charges WHERE awaits_at IS NOT NULL`); n != 0 {
		t.Error("a charge waits for a payer who is not there")
	}
	s.World.CheckRecords(1)
}

func TestReturnURLs(t *testing.T) {
	t.Parallel()
	p := world.Twenty
	for _, good := range []string{
		"https://shop.example", "http://127.0.0.1:8083/back", "HTTPS://Shop.Example/a?b=c&d=%20#e",
		"https://[::1]:8443/", "shop://paid", "com.example.shop+pay://orders/7?x=1",
		"https://shop.example/" + strings.Repeat("a", 2048-len("https://shop.example/")),
	} {
		p.ReturnURL = good
		if err := p.Validate(); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"/back", "shop.example/back", "//shop.example", "https:shop.example", "https://", "https:///back",
		"https://:80", "javascript:alert(1)", "javascript://%0aalert(1)", "JavaScript://x", "data:text/html,x",
		"data://text/html", "file:///etc/passwd", "vbscript://x", "blob://x", "view-source://x", "about://x",
		"https://user:word@shop.example", "https://user@shop.example", "https://shop.example/a b",
		"https://shop.example/\n", "https://shop.example/é", "https://shop.example/<b>", "1shop://paid",
		`https://shop.example\@evil.example`, "https://shop.example/%zz", " https://shop.example", "shop://",
		"https://shop.example/" + strings.Repeat("a", 2049-len("https://shop.example/")),
	} {
		p.ReturnURL = bad
		var e *problem.Error
		if err := p.Validate(); !errors.As(err, &e) || e.Param != "return_url" {
			t.Errorf("%q: %v; want it refused", bad, err)
		}
	}
}

// Each attempt sends what the first one sent, whoever makes it.
func TestWhatIsSaidOfThePayerIsFrozen(t *testing.T) {
	t.Parallel()
	w := world.NewIntents(t)
	i := w.Start()
	if _, err := w.Sim.AddFault(stripesim.Rule{
		Match: stripesim.Match{Params: map[string]string{"off_session": "true"}}, Count: 2,
		Fault: stripesim.Fault{Type: stripesim.DropBefore},
	}); err != nil {
		t.Fatal(err)
	}
	off := true
	p := world.Twenty
	p.ReturnURL, p.OffSession = "https://shop.example/back?order=7", &off
	_, err := i.Charges.Create(t.Context(), w.Request("k"), p)
	world.WantUnknown(t, err)
	w.Age(90 * time.Second)
	w.Pass(i)
	w.Age(90 * time.Second)
	// A server of another flow, and another caller's words, change nothing.
	w.Intents = false
	res, err := w.Start().Charges.Create(t.Context(), w.Request("k"), charges.Params{})
	if err != nil || res.Answer.Code != http.StatusCreated {
		t.Fatalf("got %d %s, %v, want 201", res.Answer.Code, res.Answer.Body, err)
	}
	sent := sentTo(w, t, "/confirm")
	if len(sent) != 3 || sent[0] != sent[1] || sent[1] != sent[2] ||
		!strings.Contains(sent[0], "off_session:true") || !strings.Contains(sent[0], "return_url:"+p.ReturnURL) {
		t.Errorf("sent %q", sent)
	}
	w.CheckRecords(1)
}

// sentTo are the parameters and keys of the POSTs to the provider whose path ends so, in order.
func sentTo(w *world.World, t *testing.T, path string) (all []string) {
	t.Helper()
	rec := httptest.NewRecorder()
	w.Sim.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/_sim/requests?limit=1000", nil))
	var sent struct {
		Data []struct {
			Path   string
			Key    string `json:"idempotency_key"`
			Params map[string]string
		}
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &sent); err != nil {
		t.Fatal(err)
	}
	for _, r := range slices.Backward(sent.Data) {
		if strings.HasSuffix(r.Path, path) {
			all = append(all, fmt.Sprint(r.Key, r.Params))
		}
	}
	return all
}
