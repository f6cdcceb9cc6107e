package stripe

import (
	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"paidonce/provider"
)

// Told reads the charge or the refund out of an event. It has to be whole, as one that is read, and say its
// mode: there is nothing to take the rest from, and our key's mode may be the other one.
func (p *Provider) Told(payload []byte) (*provider.Charge, *provider.Refund) {
	var e struct {
		Data struct {
			Object jsontext.Value `json:"object"`
		} `json:"data"`
	}
	var what struct {
		Object word `json:"object"`
	}
	if json.Unmarshal(payload, &e, decoding) != nil || json.Unmarshal(e.Data.Object, &what, decoding) != nil {
		return nil, nil
	}
	switch what.Object {
	case "charge":
		var c chargeFields
		if json.Unmarshal(e.Data.Object, &c, decoding) == nil && c.whole() && c.Livemode.given {
			return p.charge(&c), nil
		}
	case "refund":
		var r refundFields
		if json.Unmarshal(e.Data.Object, &r, decoding) == nil && r.whole() {
			return nil, p.refund(&r)
		}
	}
	return nil, nil
}
