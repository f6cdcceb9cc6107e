package world

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"time"

	"paidonce/charges"
	"paidonce/inbox"
	"paidonce/provider"
)

// Secret signs the provider's events; OldSecret is an earlier one that is still valid.
const (
	Secret    = "whsec_test"
	OldSecret = "whsec_old"
)

// ProviderEvents returns what processes the provider's events for an instance and asks psp; nil
// means the world's own provider.
func (w *World) ProviderEvents(i Instance, psp provider.Provider) *charges.ProviderEvents {
	if psp == nil {
		psp = w.Provider
	}
	return charges.NewProviderEvents(i.Store, i.Engine.Desk, psp, i.cfg)
}

// Inbox returns the inbox of an instance, which processes nothing by itself. It accepts [Secret]
// and the older one.
func (w *World) Inbox(i Instance) *inbox.Inbox {
	return w.InboxWith(w.ProviderEvents(i, nil).Apply)
}

// InboxWith returns an inbox that handles its events in another way.
func (w *World) InboxWith(apply inbox.Apply) *inbox.Inbox {
	return inbox.New(inbox.Config{
		Pool: w.Pool, Secrets: []string{OldSecret, Secret}, Apply: apply, Log: Quiet,
	})
}

// Event returns an event as Stripe sends it: of its own API version, and with a state that nobody
// should trust.
func Event(id, typ, object string) []byte {
	return fmt.Appendf(nil,
		`{"id":%q,"object":"event","api_version":"2031-01-01.other","created":%d,"type":%q,"livemode":false,`+
			`"data":{"object":{"id":%q,"amount":1,"status":"failed"}}}`, id, time.Now().Unix(), typ,
		object)
}

// Signed returns the header Stripe-Signature of a body that was signed at a given time.
func Signed(body []byte, secret string, at time.Time) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%x", at.Unix(), mac.Sum(nil))
}

// Deliver delivers an event to the inbox, signed.
func (w *World) Deliver(in *inbox.Inbox, id, typ, object string) {
	w.T.Helper()
	body := Event(id, typ, object)
	if err := in.Receive(context.Background(), body, Signed(body, Secret, time.Now())); err != nil {
		w.T.Fatal(err)
	}
}

// Process processes everything that is due, whatever its schedule says.
func (w *World) Process(in *inbox.Inbox) {
	w.T.Helper()
	w.Exec(
		`UPDATE provider_events SET next_run_at = clock_timestamp() WHERE next_run_at IS NOT NULL`,
	)
	for {
		n, err := in.RunOnce(context.Background(), 5)
		if err != nil {
			w.T.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}
