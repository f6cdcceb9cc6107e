package stripe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"paidonce/provider"
	"paidonce/provider/stripe"
	"paidonce/provider/stripesim"
)

// The answer to a charge is lost. It is found by the tags that it was sent with, and the same key
// makes no second one.
func Example() {
	sim, err := stripesim.New(stripesim.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(sim)
	defer server.Close()
	psp, err := stripe.New(stripe.Config{APIKey: "sk_test_x", BaseURL: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	lost := stripesim.Rule{Count: 1, Match: stripesim.Match{Method: http.MethodPost}, Fault: stripesim.Fault{Type: stripesim.DropAfter}}
	if _, err := sim.AddFault(lost); err != nil {
		fmt.Println(err)
		return
	}

	ctx, begun := context.Background(), time.Now()
	tags := provider.Tags{Operation: "op_1", Installation: "example"}
	request := provider.ChargeRequest{IdempotencyKey: "op_1-1", Tags: tags, Amount: 2000, Currency: "usd", Source: "tok_visa", Capture: true}
	_, err = psp.Charge(ctx, &request)
	fmt.Println("the outcome is known:", err == nil)

	found, err := psp.FindCharge(ctx, provider.Lookup{Tags: tags, From: begun.Add(-time.Minute), To: time.Now().Add(time.Minute)})
	fmt.Println("found:", len(found), err)

	again, err := psp.Charge(ctx, &request)
	fmt.Println("the same charge:", again.Charge != nil && again.Charge.ID == found[0].ID, err)
	fmt.Println("charges made:", sim.Stats().ChargesExecuted)
	// Output:
	// the outcome is known: false
	// found: 1 <nil>
	// the same charge: true <nil>
	// charges made: 1
}
