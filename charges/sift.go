package charges

import (
	"encoding/json"
	"strings"

	"paidonce/provider"
)

// nothingHere is what comes of news that no branch of [Learner.Learn] is for.
const nothingHere = "of a type that changes nothing here"

// notOurs is what comes of news about what another program made. inbox.Foreign is the same.
const notOurs = "not of this installation"

// Sift tells, of news that just came, whether its payload is to be kept: on an account that others
// use as well, most of it is theirs, with their customers in it. done is what comes of news that
// need not be looked at; "" for all that might be about a charge of ours, whose state is asked for
// whatever the payload says.
//
// What we make carries our tags from its first moment, so a charge or an intent without them is
// another's. Refunds and disputes can be made elsewhere of charges of ours, and of a dispute the
// payload may be all that we get to read: these are kept until it is known whose they are.
func (l *Learner) Sift(kind string, payload []byte) (keep bool, done string) {
	if !handled(kind) {
		return false, nothingHere
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
		return true, "" // in doubt
	}
	switch o := e.Data.Object; o.Object {
	case "charge", "payment_intent":
		return o.Metadata[provider.MetadataInstallation] == l.cfg.Installation, ""
	}
	return true, ""
}

// handled reports whether Learn has a branch for news of a type.
func handled(kind string) bool {
	for _, prefix := range []string{"charge.", "payment_intent.", "refund."} {
		if strings.HasPrefix(kind, prefix) {
			return true
		}
	}
	return false
}
