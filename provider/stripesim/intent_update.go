package stripesim

import (
	"maps"
	"slices"
	"strings"
)

const (
	updateParams = "amount application_fee_amount capture_method currency customer description payment_method receipt_email " +
		"setup_future_usage statement_descriptor statement_descriptor_suffix transfer_group"
	updateNested = "expand metadata payment_method_data payment_method_options payment_method_types shipping transfer_data"
	// what can be changed at any time; the rest until the intent has charged
	updateAlways = "description expand metadata receipt_email shipping transfer_group"
)

// updateIntent changes what was sent and nothing else. An empty text takes away what is there.
// After another price or means of payment the intent has to be confirmed again.
func (s *Server) updateIntent(c *call, id string) (work, *apiError) {
	p := c.params
	if bad := p.allow(updateParams, updateNested); bad != nil {
		return nil, bad
	}
	u, bad := p.update()
	if bad != nil {
		return nil, bad
	}
	return s.onIntent(c, id, opUpdate, func(st *state, rec *record) *apiError {
		in := rec.Intent
		if bad := in.fixed(p); bad != nil {
			return bad
		}
		was := *in
		if in.Failure = nil; u.priced {
			in.Amount = u.amount
		}
		in.setTexts(p)
		if bad := checkPrice(in.Amount, in.Currency); bad != nil {
			return bad
		}
		if in.Customer != "" && st.customer(in.Customer, in.Live) == nil {
			return noSuchParam("customer", in.Customer, "customer")
		}
		if p.get("capture_method") != "" {
			in.Manual = u.manual
		}
		if u.shipping != nil {
			in.Shipping = u.shipping
		}
		if len(u.types) > 0 {
			in.Redirects, in.Types = "", u.types
		}
		if bad := in.mergeMetadata(p); bad != nil {
			return bad
		}
		if bad := in.attach(st, u.pays); bad != nil {
			return bad
		}
		if in.Status == needsAction && (in.Amount != was.Amount || in.Currency != was.Currency) {
			in.Status = needsConfirm
		}
		if in.Status != needsAction {
			in.Action = ""
		}
		return nil
	}), nil
}

// update is what changes beside texts and metadata.
type update struct {
	amount         int64
	priced, manual bool
	pays           string
	types          []string
	shipping       []pair
}

// update checks what can be checked without the intent.
func (p params) update() (u update, bad *apiError) {
	if u.amount, u.priced, bad = p.positive("amount"); bad != nil {
		return u, bad
	}
	if u.shipping, bad = p.intentTexts(); bad != nil {
		return u, bad
	}
	if _, bad = p.metadata(); bad != nil {
		return u, bad
	}
	if _, bad = p.future(); bad != nil {
		return u, bad
	}
	if u.manual, bad = p.manual(); bad != nil {
		return u, bad
	}
	if u.types, bad = p.types(); bad != nil {
		return u, bad
	}
	u.pays, bad = p.method()
	return u, bad
}

func (in *intent) setTexts(p params) {
	for name, at := range map[string]*string{
		"customer": &in.Customer, "description": &in.Description, "receipt_email": &in.ReceiptEmail, "currency": &in.Currency,
		"statement_descriptor_suffix": &in.Suffix, "setup_future_usage": &in.Future,
	} {
		if v, given := p.lookup(name); given {
			*at = v
		}
	}
	in.Currency = strings.ToLower(in.Currency)
}

// fixed says which of the parameters can no longer be changed.
func (in *intent) fixed(p params) *apiError {
	switch in.Status {
	case needsMethod, needsConfirm, needsAction:
		return nil
	}
	for _, f := range p {
		name, _, _ := strings.Cut(f.K, "[")
		if !has(updateAlways, name) {
			bad := in.unexpected("This PaymentIntent's %s could not be updated because it has a status of %s. You may only update the %s of a "+
				"PaymentIntent with one of the following statuses: requires_payment_method, requires_confirmation, requires_action.",
				name, in.Status, name)
			bad.Param = name
			return bad
		}
	}
	return nil
}

// mergeMetadata sets the pairs that are sent; an empty value removes one, and an empty metadata
// all.
func (in *intent) mergeMetadata(p params) *apiError {
	pairs := asMap(in.Metadata)
	if _, given := p.lookup("metadata"); given {
		clear(pairs)
	}
	for _, f := range p {
		name, inside := strings.CutPrefix(f.K, "metadata[")
		if !inside {
			continue
		}
		if name = strings.TrimSuffix(name, "]"); f.V == "" {
			delete(pairs, name)
		} else {
			pairs[name] = f.V
		}
	}
	if len(pairs) > maxPairs {
		return tooManyPairs()
	}
	in.Metadata = nil
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		in.Metadata = append(in.Metadata, pair{name, pairs[name]})
	}
	return nil
}
