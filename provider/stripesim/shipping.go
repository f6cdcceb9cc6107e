package stripesim

import (
	"strings"
	"unicode/utf8"
)

const (
	shippingTexts = "carrier name phone tracking_number"
	addressTexts  = "city country line1 line2 postal_code state"
)

// shipping collects shipping[…], sorted: where and to whom goods are sent.
func (p params) shipping() (out []pair, bad *apiError) {
	address := false
	for _, f := range p {
		rest, ok := strings.CutPrefix(f.K, "shipping[")
		if !ok {
			continue
		}
		name := strings.TrimSuffix(rest, "]")
		inner, inside := strings.CutPrefix(name, "address][")
		switch {
		case !inside && !has(shippingTexts, name), inside && !has(addressTexts, inner):
			return nil, invalid("parameter_unknown", f.K, "Received unknown parameter: %s", f.K)
		case utf8.RuneCountInString(f.V) > 5000:
			return nil, invalid("parameter_invalid_string_too_long", f.K, "The value can have at most 5000 characters.")
		case f.V == "":
			continue
		case inside:
			address = true
		}
		out = append(out, pair{name, f.V})
	}
	if out == nil {
		return nil, nil
	}
	if !address {
		return nil, missing("shipping[address]")
	}
	if params(out).get("name") == "" {
		return nil, missing("shipping[name]")
	}
	return out, nil
}

// intentTexts checks the texts of an intent, and reads its shipping. The simulator's intents are
// paid with cards, for which a whole descriptor is refused.
func (p params) intentTexts() ([]pair, *apiError) {
	if bad := checkTexts(p); bad != nil {
		return nil, bad
	}
	if _, given := p.lookup("statement_descriptor"); given {
		return nil, invalid("", "statement_descriptor", "The statement_descriptor parameter is not supported for the payment_method_type `card`. "+
			"Pass in `statement_descriptor_suffix` or remove the `statement_descriptor` parameter.")
	}
	return p.shipping()
}

// shipping writes what there is, and null for the rest.
func (e *enc) shipping(texts []pair) {
	if texts == nil {
		e.nulls("shipping")
		return
	}
	e.key("shipping")
	e.open()
	e.key("address")
	e.open()
	for _, name := range strings.Fields(addressTexts) {
		e.opt(name, params(texts).get("address]["+name))
	}
	e.close()
	e.b = append(e.b, ',')
	for _, name := range strings.Fields(shippingTexts) {
		e.opt(name, params(texts).get(name))
	}
	e.close()
	e.b = append(e.b, ',')
}
