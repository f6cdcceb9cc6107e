package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"paidonce/charges"
	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// Twenty is a charge of $20 that succeeds; Authorised is the same, to be captured later.
var (
	Twenty     = charges.Params{Amount: 2000, Currency: "usd", Source: "tok_visa", Capture: true}
	Authorised = charges.Params{Amount: 2000, Currency: "usd", Source: "tok_visa"}
)

// Request returns a request of the only account under a key. All requests of one kind are the same
// request.
func (w *World) Request(key string) idemkeys.Request {
	return idemkeys.Request{
		AccountID: w.Key.AccountID, APIKeyID: w.Key.ID, Key: key, RequestID: db.NewID("req"),
		Fingerprint: idemkeys.NewFingerprint("POST", "/v1/charges", "", []byte("{}")),
	}
}

// Charge requests a charge of $20.
func (i Instance) Charge(key string) (idemkeys.Result, error) {
	return i.Charges.Create(context.Background(), i.world.Request(key), Twenty)
}

// MustCharge makes a charge that has to succeed, and returns its id.
func (i Instance) MustCharge(key string, p charges.Params) string {
	t := i.world.T
	t.Helper()
	res, err := i.Charges.Create(context.Background(), i.world.Request(key), p)
	if err != nil {
		t.Fatal(err)
	}
	var c charges.Charge
	if err := json.Unmarshal(res.Answer.Body, &c); err != nil || c.Status != "succeeded" {
		t.Fatalf("the charge is %s, %v; want one that succeeded", res.Answer.Body, err)
	}
	return c.ID
}

// Refund requests a refund of the amount; 0 means what is left.
func (i Instance) Refund(key, charge string, amount int64) (idemkeys.Result, error) {
	r := i.world.Request(key)
	r.Fingerprint = idemkeys.NewFingerprint("POST", "/v1/refunds",
		"", fmt.Append(nil, charge, amount))
	return i.Charges.Refund(context.Background(), r, charges.RefundParams{
		Charge: charge, Amount: amount,
	})
}

// MustRefund makes a refund, and returns its id at the provider.
func (i Instance) MustRefund(key, charge string, amount int64) (providerID string) {
	t := i.world.T
	t.Helper()
	res, err := i.Refund(key, charge, amount)
	if err != nil {
		t.Fatal(err)
	}
	var refund charges.Refund
	if err := json.Unmarshal(res.Answer.Body, &refund); err != nil || refund.Provider.ID == nil {
		t.Fatalf("the refund is %s, %v; want one that the provider made", res.Answer.Body, err)
	}
	return *refund.Provider.ID
}

// Capture requests a capture of the amount; 0 means all.
func (i Instance) Capture(key, charge string, amount int64) (idemkeys.Result, error) {
	r := i.world.Request(key)
	r.Fingerprint = idemkeys.NewFingerprint("POST", "/v1/charges/"+charge+"/capture",
		"", fmt.Append(nil, amount))
	return i.Charges.Capture(context.Background(), r, charges.CaptureParams{
		Charge: charge, Amount: amount,
	})
}

// Cancel requests that a charge is cancelled.
func (i Instance) Cancel(key, charge string) (idemkeys.Result, error) {
	r := i.world.Request(key)
	r.Fingerprint = idemkeys.NewFingerprint("POST", "/v1/charges/"+charge+"/cancel", "", []byte("{}"))
	return i.Charges.Cancel(context.Background(), r, charges.CancelParams{Charge: charge})
}

// LookUp returns how the only operation is looked up at the provider.
func (w *World) LookUp() provider.Lookup {
	w.T.Helper()
	var l provider.Lookup
	l.Tags.Installation = Installation
	w.Read(`SELECT operation_id, created_at, clock_timestamp() FROM idempotency_keys`, nil,
		&l.Tags.Operation, &l.From, &l.To)
	return l
}

// ProviderCharge returns the provider's id of the only operation's charge.
func (w *World) ProviderCharge() string {
	w.T.Helper()
	hits, err := w.Provider.FindCharge(context.Background(), w.LookUp())
	if err != nil || len(hits) != 1 {
		w.T.Fatalf("the provider has %d charges of the operation, %v; want one", len(hits), err)
	}
	return hits[0].ID
}

// Dispute returns the id of the only dispute at the provider.
func (w *World) Dispute() string { return w.OnlyOne("/v1/disputes") }

// OnlyOne returns the id of the only object in one of the provider's lists, such as /v1/refunds.
func (w *World) OnlyOne(list string) string {
	w.T.Helper()
	r := httptest.NewRequest(http.MethodGet, list, nil)
	r.Header.Set("Authorization", "Bearer sk_test_x")
	rec := httptest.NewRecorder()
	w.Sim.ServeHTTP(rec, r)
	var page struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &page); err != nil || len(page.Data) != 1 {
		w.T.Fatalf("the provider's list %s is %s, %v; want one object", list, rec.Body, err)
	}
	return page.Data[0].ID
}

// WantUnknown fails the test unless err says that the outcome is unknown.
func WantUnknown(t testing.TB, err error) {
	t.Helper()
	var u *idemkeys.Unknown
	if !errors.As(err, &u) {
		t.Fatalf("got %v, want an unknown outcome", err)
	}
}

// Same returns an error unless both answers have the same status, header and bytes.
func Same(a, b idemkeys.Answer) error {
	if a.Code != b.Code || string(a.Body) != string(b.Body) ||
		fmt.Sprint(a.Header) != fmt.Sprint(b.Header) {
		return fmt.Errorf("one key has two answers:\n%d %s%v\n%d %s%v", a.Code, a.Body, a.Header,
			b.Code, b.Body, b.Header)
	}
	return nil
}
