package main

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"time"
)

// charge is what B answers: the fields that the product's interface names, so that the rows have
// its size.
type charge struct {
	ID                        string            `json:"id"`
	Object                    string            `json:"object"`
	Amount                    int64             `json:"amount"`
	AmountCaptured            int64             `json:"amount_captured"`
	AmountRefunded            int64             `json:"amount_refunded"`
	Captured                  bool              `json:"captured"`
	Created                   int64             `json:"created"`
	Currency                  string            `json:"currency"`
	Customer                  *string           `json:"customer"`
	Description               *string           `json:"description"`
	Disputed                  bool              `json:"disputed"`
	FailureCode               *string           `json:"failure_code"`
	FailureMessage            *string           `json:"failure_message"`
	Livemode                  bool              `json:"livemode"`
	Metadata                  map[string]string `json:"metadata"`
	Outcome                   *assessment       `json:"outcome"`
	Paid                      bool              `json:"paid"`
	Provider                  providerRef       `json:"provider"`
	ReceiptEmail              *string           `json:"receipt_email"`
	Refunded                  bool              `json:"refunded"`
	StatementDescriptorSuffix *string           `json:"statement_descriptor_suffix"`
	Status                    string            `json:"status"`
}

type assessment struct {
	NetworkStatus string `json:"network_status"`
	Reason        string `json:"reason"`
	RiskLevel     string `json:"risk_level"`
	SellerMessage string `json:"seller_message"`
	Type          string `json:"type"`
}

type providerRef struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// event is what goes into the outbox.
type event struct {
	ID         string    `json:"id"`
	Object     string    `json:"object"`
	APIVersion string    `json:"api_version"`
	Created    int64     `json:"created"`
	Data       eventData `json:"data"`
	Livemode   bool      `json:"livemode"`
	Type       string    `json:"type"`
}

func newEvent(id string, created int64, body []byte) event {
	return event{
		ID: id, Object: "event", APIVersion: "2023-10-16", Created: created, Data: eventData{body},
		Type: "charge.succeeded",
	}
}

type eventData struct {
	Object json.RawMessage `json:"object"`
}

// frozen is the stored part of the request to the provider.
type frozen struct {
	IdempotencyKey string            `json:"idempotency_key"`
	Tags           map[string]string `json:"tags"`
	Livemode       bool              `json:"livemode"`
	Amount         int64             `json:"amount"`
	Currency       string            `json:"currency"`
	Source         string            `json:"source"`
	Capture        bool              `json:"capture"`
	Description    string            `json:"description"`
	Metadata       map[string]string `json:"metadata"`
}

// What clients send, of a length that real ones have. The stored answer comes to about 900 bytes
// with it.
const (
	sampleDescription = "Order 10042-77 of 29 November, 3 items, standard delivery to the " +
		"billing address, expected within 3 working days"
	sampleMetadata = `{"cart":"b5f0c0de-4c1d-4a3e-9f53-0d1c2b3a4f5e","order_url":"https://shop.example.com/orders/10042-77?from=checkout"}`
)

// benchInstallation stands for an installation's tag.
const benchInstallation = "0123456789abcdef0123456789abcdef"

const storedHeaders = `{"Content-Type":"application/json","Location":"/v1/charges/ch_01K00000000000000000000000"}`

// owner owns the rows.
type owner struct{ Account, KeyID string }

// sampleRow has one charge's values, as long as real ones, for pgbench and for the rows that exist
// beforehand. The caller adds the ids.
func sampleRow(o owner) map[string]any {
	id := strings.Repeat("0", 26)
	var meta map[string]string
	if err := json.Unmarshal([]byte(sampleMetadata), &meta); err != nil {
		panic(err) // our own text
	}
	description := sampleDescription
	params := mustJSON(frozen{
		IdempotencyKey: "po_" + strings.Repeat("0", 40), Tags: map[string]string{
			"operation": "op_" + id, "installation": benchInstallation,
		},
		Amount: 4200, Currency: "usd", Source: "tok_visa", Capture: true, Description: description,
		Metadata: meta,
	})
	outcome := assessment{
		NetworkStatus: "approved_by_network", RiskLevel: "normal",
		SellerMessage: "Payment complete.", Type: "authorized",
	}
	body := mustJSON(charge{
		ID: "ch_" + id, Object: "charge", Amount: 4200, AmountCaptured: 4200, Captured: true,
		Created:  time.Now().Unix(),
		Currency: "usd", Description: &description, Metadata: meta, Outcome: &outcome, Paid: true,
		Provider: providerRef{"stripe", "ch_" + strings.Repeat("0", 24)}, Status: "succeeded",
	})
	payload := mustJSON(newEvent("evt_"+id, time.Now().Unix(), body))
	hash := sha256.Sum256(params)
	return map[string]any{
		"account": leanAccount, "account_id": o.Account, "api_key_id": o.KeyID,
		"request_hash": hash[:], "params": params, "amount": int64(4200),
		"description": description, "metadata": sampleMetadata, "headers": []byte(storedHeaders),
		"body":    body,
		"outcome": string(mustJSON(outcome)), "payload": payload,
	}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own plain structs
	}
	return b
}
