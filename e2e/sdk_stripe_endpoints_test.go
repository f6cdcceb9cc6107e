package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stripe/stripe-go/v76"
	"github.com/stripe/stripe-go/v76/client"
)

func hookOf(key string) *stripe.WebhookEndpointParams {
	p := &stripe.WebhookEndpointParams{
		URL:           stripe.String("https://warehouse.example.com/events"),
		EnabledEvents: stripe.StringSlice([]string{"charge.succeeded", "charge.failed"}),
		Description:   stripe.String("one"), APIVersion: stripe.String("2023-10-16"),
		Connect: stripe.Bool(false),
	}
	p.AddMetadata("a", "1")
	p.AddMetadata("b", "2")
	if key != "" {
		p.SetIdempotencyKey(key)
	}
	return p
}

// Endpoints are made, changed, listed and deleted as at Stripe.
func TestStripeGoEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve()
	sc, _ := w.stripeGo(p, 0)
	made, err := sc.WebhookEndpoints.New(hookOf("order-hook"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(made.ID, "we_") || made.Object != "webhook_endpoint" ||
		made.Status != "enabled" || made.Livemode || made.APIVersion != "2023-10-16" ||
		made.Application != "" || made.Description != "one" || made.Metadata["b"] != "2" ||
		!strings.HasPrefix(made.Secret, "whsec_") ||
		!slices.Equal(made.EnabledEvents, []string{"charge.failed", "charge.succeeded"}) {
		t.Errorf("made %+v", made)
	}
	again, err := sc.WebhookEndpoints.New(hookOf("order-hook"))
	if err != nil || again.ID != made.ID || again.Secret != made.Secret ||
		again.LastResponse.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %+v %v", again, err)
	}
	tryHookUpdates(t, sc, made)
	second, err := sc.WebhookEndpoints.New(hookOf(""))
	if err != nil || second.ID == made.ID {
		t.Fatalf("the second is %+v, %v", second, err)
	}
	params := &stripe.WebhookEndpointListParams{}
	params.Limit = stripe.Int64(1)
	var ids []string
	it := sc.WebhookEndpoints.List(params)
	for it.Next() {
		ids = append(ids, it.WebhookEndpoint().ID)
	}
	if it.Err() != nil || !slices.Equal(ids, []string{second.ID, made.ID}) {
		t.Errorf("listed %v, %v", ids, it.Err())
	}
	params = &stripe.WebhookEndpointListParams{}
	params.EndingBefore = stripe.String(made.ID)
	if it := sc.WebhookEndpoints.List(params); !it.Next() ||
		it.WebhookEndpoint().ID != second.ID || it.Next() || it.Err() != nil {
		t.Errorf("listed before the first one: %v", it.Err())
	}
	for _, id := range ids {
		if got, err := sc.WebhookEndpoints.Del(id, nil); err != nil || !got.Deleted {
			t.Errorf("deleted %+v %v", got, err)
		}
	}
	_, err = sc.WebhookEndpoints.Update(made.ID, &stripe.WebhookEndpointParams{})
	if e := asError(err); e.HTTPStatusCode != http.StatusNotFound {
		t.Errorf("an update of a deleted one: %v", err)
	}
}

func tryHookUpdates(t *testing.T, sc *client.API, made *stripe.WebhookEndpoint) {
	t.Helper()
	off := &stripe.WebhookEndpointParams{
		Disabled: stripe.Bool(true), Description: stripe.String(""),
	}
	off.AddMetadata("a", "")
	off.AddMetadata("c", "3")
	got, err := sc.WebhookEndpoints.Update(made.ID, off)
	if err != nil || got.Status != "disabled" || got.Description != "" || got.Secret != "" ||
		len(got.Metadata) != 2 || got.Metadata["c"] != "3" || got.URL != made.URL {
		t.Errorf("disabled: %+v %v", got, err)
	}
	on := &stripe.WebhookEndpointParams{
		Disabled: stripe.Bool(false), URL: stripe.String("https://other.example.com/"),
		EnabledEvents: stripe.StringSlice([]string{"*"}),
	}
	got, err = sc.WebhookEndpoints.Update(made.ID, on)
	if err != nil || got.Status != "enabled" || got.URL != "https://other.example.com/" ||
		!slices.Equal(got.EnabledEvents, []string{"*"}) || len(got.Metadata) != 2 {
		t.Errorf("enabled: %+v %v", got, err)
	}
	if got, err = sc.WebhookEndpoints.Get(made.ID, nil); err != nil ||
		got.Secret != made.Secret || got.Status != "enabled" {
		t.Errorf("retrieved %+v %v", got, err)
	}
}

// Without types an endpoint gets all events, and without a limit a list shows all endpoints.
func TestStripeGoManyEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sc, _ := w.stripeGo(w.serve(), 0)
	const many = 12 // more than Stripe's page has
	for range many {
		made, err := sc.WebhookEndpoints.New(&stripe.WebhookEndpointParams{
			URL: stripe.String("https://warehouse.example.com/events"),
		})
		if err != nil || !slices.Equal(made.EnabledEvents, []string{"*"}) {
			t.Fatalf("made %+v, %v", made, err)
		}
	}
	page := sc.WebhookEndpoints.List(nil).WebhookEndpointList()
	if len(page.Data) != many || page.HasMore {
		t.Errorf("the page has %d endpoints, more: %t", len(page.Data), page.HasMore)
	}
}
