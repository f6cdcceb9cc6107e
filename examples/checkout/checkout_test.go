package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"paidonce/internal/browser"
	online "paidonce/internal/shop"
	"paidonce/internal/world"
)

// checkout is the shop in front of a server with a simulated provider, whose events arrive.
type checkout struct {
	*online.Shop
	url  string // of the shop's page
	page *browser.Page
}

func open(t *testing.T) *checkout {
	t.Helper()
	browser.Find(t)
	w := world.NewIntents(t)
	c := &checkout{Shop: online.New(w)}
	hooks := httptest.NewRequest(http.MethodPost, "/_sim/webhooks", strings.NewReader(
		`{"endpoints":[{"url":"`+c.URL+online.Webhooks+`","secret":"`+world.Secret+`"}]}`))
	hooks.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	if w.Sim.ServeHTTP(rec, hooks); rec.Code != http.StatusOK {
		t.Fatalf("got %d %s", rec.Code, rec.Body)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if n, err := c.Inbox.RunOnce(ctx, 5); n == 0 || err != nil {
				time.Sleep(20 * time.Millisecond) // a worker's pause
			}
		}
	}()
	front := httptest.NewUnstartedServer(nil)
	c.url = "http://" + front.Listener.Addr().String()
	front.Config.Handler = newShop(&paidonce{url: c.Server.URL, key: c.APIKey}, c.url).handler()
	front.Start()
	t.Cleanup(func() { front.Close(); stop(); <-done })
	c.page = browser.Open(t)
	return c
}

// pay chooses a card and presses the button.
func (c *checkout) pay(card string) {
	c.page.Go(c.url)
	c.page.Wait(`document.querySelector("select")`)
	if _, err := c.page.Eval(`document.querySelector("select").value = "` + card + `"`); err != nil {
		c.World.T.Fatal(err)
	}
	c.page.Click("button")
}

// Real payers in a real browser: each card, each button of the bank, and payers who leave.
func TestPayersInABrowser(t *testing.T) {
	c := open(t)
	const secure = "tok_threeDSecure2Required"

	c.pay("tok_visa")
	c.page.Says("Thank you")
	c.pay("tok_chargeDeclined")
	c.page.Says("Your card was declined.")

	c.pay(secure)
	c.page.Click(`button[value="authorise"]`)
	c.page.Says("Thank you")
	c.pay(secure)
	c.page.Click(`button[value="fail"]`)
	c.page.Says("failed authentication")
	c.pay("tok_threeDSecureRequiredChargeDeclined")
	c.page.Click(`button[value="authorise"]`)
	c.page.Says("Your card was declined.")

	// Leaves the bank's page, comes back to the order, and goes on from there.
	c.pay(secure)
	c.page.Says("Simulated bank")
	var intent string
	c.World.Read(`SELECT intent_id FROM charges WHERE status = 'pending'`, nil, &intent)
	var order string
	c.World.Read(`SELECT metadata ->> 'order' FROM charges WHERE status = 'pending'`, nil, &order)
	c.page.Go(c.url + "/orders/" + order + "?redirect_status=succeeded") // which proves nothing
	c.page.Says("Waiting for your bank")
	c.page.Click("#continue")
	c.page.Click(`button[value="authorise"]`)
	c.page.Says("Thank you")

	// Comes back too late: the wait is over.
	c.pay(secure)
	c.page.Says("Simulated bank")
	c.World.Exec(`UPDATE charges SET settled_at = settled_at - $1::interval,
		awaits_at = clock_timestamp() WHERE status = 'pending'`, world.PayerWindow)
	if _, err := c.World.ProviderEvents(c.World.Start(), nil).Await(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	c.page.Click(`button[value="authorise"]`)
	c.page.Says("Not paid")
	if got, err := c.page.Eval("location.search"); err != nil || !strings.Contains(got, "redirect_status=failed") {
		t.Errorf("came back to %s, %v", got, err)
	}
	c.World.CheckRecords(3)
}
