package charges

import (
	"encoding/json"
	"strings"

	"paidonce/inbox"
	"paidonce/provider"
)

// unhandledType is the result of an event that no branch of [ProviderEvents.Apply] handles.
var unhandledType = inbox.Nothing("of a type that changes nothing here")

// Sift reports whether the payload of an event that just arrived is kept: on a shared account most
// events are about other people's customers. done is the result of an event that need not be
// processed. It is empty for all events that might be about one of our charges, whose state is read
// from the provider whatever the payload says.
//
// What we make carries our tags from its first moment, so a charge or an intent without them is
// another's. Refunds, disputes and warnings can be made elsewhere of our charges, and of the latter
// two the payload may be all that we get to read: these are kept until it is known whose they are.
func (pe *ProviderEvents) Sift(kind string, payload []byte) (keep bool, done inbox.Result) {
	if !handled(kind) {
		return false, unhandledType
	}
	var e struct {
		Data struct {
			Object struct {
				Object   string         `json:"object"`
				Metadata map[string]any `json:"metadata"`
			} `json:"object"`
		} `json:"data"`
	}
	if json.Unmarshal(payload, &e) != nil {
		return true, inbox.Result{} // in doubt
	}
	switch o := e.Data.Object; o.Object {
	case "charge", "payment_intent":
		return o.Metadata[provider.MetadataInstallation] == pe.cfg.Installation, inbox.Result{}
	}
	return true, inbox.Result{}
}

// handled reports whether Apply has a branch for events of a type.
func handled(kind string) bool {
	for _, prefix := range []string{
		"charge.", "payment_intent.", "refund.", "radar.early_fraud_warning.",
	} {
		if strings.HasPrefix(kind, prefix) {
			return true
		}
	}
	return false
}
