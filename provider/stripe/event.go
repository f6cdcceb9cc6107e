package stripe

import (
	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"paidonce/provider"
)

// EventObject reads the object out of an event. It has to be whole, as one that is read; a charge
// has to say its mode, too: there is nothing to take the rest from, and our key's mode may be the
// other one.
func (p *Provider) EventObject(payload []byte) provider.EventObject {
	var e struct {
		Created moment `json:"created"`
		Data    struct {
			Object jsontext.Value `json:"object"`
		} `json:"data"`
	}
	var what struct {
		Object word `json:"object"`
	}
	if json.Unmarshal(payload, &e, decoding) != nil || json.Unmarshal(e.Data.Object, &what, decoding) != nil {
		return provider.EventObject{}
	}
	out := provider.EventObject{At: e.Created.Time}
	switch what.Object {
	case "charge":
		var c chargeFields
		if json.Unmarshal(e.Data.Object, &c, decoding) == nil && c.whole() && c.Livemode.given {
			out.Charge = p.charge(&c)
		}
	case "refund":
		var r refundFields
		if json.Unmarshal(e.Data.Object, &r, decoding) == nil && r.whole() {
			out.Refund = p.refund(&r)
		}
	case "dispute":
		var d disputeFields
		if json.Unmarshal(e.Data.Object, &d, decoding) == nil && d.whole() {
			out.Dispute = p.dispute(&d)
		}
	case warningObject:
		var w warningFields
		if json.Unmarshal(e.Data.Object, &w, decoding) == nil && w.whole() {
			out.Warning = p.warning(&w)
		}
	}
	return out
}
