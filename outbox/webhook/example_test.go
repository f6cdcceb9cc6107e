package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"paidonce/outbox"
	"paidonce/outbox/webhook"
)

// An endpoint verifies what it is sent with any library of Standard Webhooks, or of Stripe's.
func ExampleSender_Send() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		verifier, err := standard.NewWebhook(secret)
		if err == nil {
			err = verifier.Verify(body, r.Header)
		}
		fmt.Printf("%s %s, verified: %v\n", r.Header.Get("Webhook-Id"), body, err == nil)
	}))
	defer endpoint.Close()

	// only public addresses otherwise
	sender := webhook.New(webhook.Config{Guard: webhook.Guard{AllowPrivate: true}})
	defer sender.CloseIdle()
	answer, err := sender.Send(context.Background(), outbox.Message{
		EventID: "evt_1", URL: endpoint.URL, Secrets: []string{secret}, Payload: []byte(`{"id":"evt_1","type":"charge.succeeded"}`),
	})
	fmt.Println(answer.Status, err)
	// Output:
	// evt_1 {"id":"evt_1","type":"charge.succeeded"}, verified: true
	// 200 <nil>
}
