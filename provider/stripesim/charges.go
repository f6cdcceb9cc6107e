package stripesim

import (
	"net/http"
	"strings"
)

const (
	chargeParams = "amount application_fee_amount capture currency customer description on_behalf_of receipt_email source " +
		"statement_descriptor statement_descriptor_suffix transfer_group"
	captureParams = "amount application_fee_amount receipt_email statement_descriptor statement_descriptor_suffix transfer_group"
)

func (s *Server) createCharge(c *call) (work, *apiError) {
	p := c.params
	if bad := p.allow(chargeParams, "expand metadata radar_options shipping transfer_data"); bad != nil {
		return nil, bad
	}
	amount, currency, bad := p.price()
	if bad != nil {
		return nil, bad
	}
	capture, bad := p.boolean("capture", true)
	if bad != nil {
		return nil, bad
	}
	metadata, bad := p.metadata()
	if bad != nil {
		return nil, bad
	}
	if bad := checkTexts(p); bad != nil {
		return nil, bad
	}
	shipping, bad := p.shipping()
	if bad != nil {
		return nil, bad
	}
	source, cust := p.get("source"), p.get("customer")
	if source == "" && cust == "" {
		return nil, missing("source")
	}
	ch := &charge{
		Live: c.live, Amount: amount, Currency: currency, Captured: capture, Customer: cust, Source: source, Key: c.key,
		Description: p.get("description"), ReceiptEmail: p.get("receipt_email"), Suffix: p.get("statement_descriptor_suffix"),
		Descriptor: p.get("statement_descriptor"), Metadata: metadata, Shipping: shipping,
	}
	return func(st *state) (*record, *apiError) { return s.charge(st, ch) }, nil
}

func leastAmount(currency string) string {
	s := money(minimum(currency), currency)
	if strings.HasPrefix(s, "$") || strings.HasPrefix(s, "€") || strings.HasPrefix(s, "£") {
		return s + " " + currency
	}
	return s
}

func checkTexts(p params) *apiError {
	for _, name := range []string{"statement_descriptor", "statement_descriptor_suffix"} {
		v := p.get(name)
		if v == "" {
			continue
		}
		if len(v) > 22 || strings.ContainsAny(v, `<>'"*\`) || !strings.ContainsAny(strings.ToLower(v), "abcdefghijklmnopqrstuvwxyz") ||
			name == "statement_descriptor" && len(v) < 5 {
			return invalid("", name, "The %s must have at least one letter and at most 22 characters, without <, >, ', \", * and \\.",
				strings.ReplaceAll(name, "_", " "))
		}
	}
	if v := p.get("receipt_email"); v != "" && !strings.Contains(v, "@") {
		return invalid("email_invalid", "receipt_email", "Invalid email address: %s", v)
	}
	return nil
}

// charge runs a validated charge against the cards and customers that exist.
func (s *Server) charge(st *state, ch *charge) (*record, *apiError) {
	if ch.Customer != "" {
		cust := st.customer(ch.Customer, ch.Live)
		switch {
		case cust == nil:
			return nil, noSuchParam("customer", ch.Customer, "customer")
		case ch.Source != "":
			token, has := cust.card(ch.Source)
			if !has {
				return nil, invalid("resource_missing", "source", "Customer %s does not have a linked source with ID %s.", ch.Customer, ch.Source)
			}
			ch.Method, ch.Source = ch.Source, token
			return s.chargeCard(ch)
		case cust.Source == "":
			return nil, &apiError{
				Status: http.StatusPaymentRequired, Type: typeCard, Code: "missing", Param: "customer",
				Message: "Cannot charge a customer that has no active card",
			}
		}
		ch.Source = cust.Source
	}
	return s.chargeCard(ch)
}

func (s *Server) chargeCard(ch *charge) (*record, *apiError) {
	card, known := testCards[ch.Source]
	if !known {
		what := "token"
		if !strings.HasPrefix(ch.Source, "tok_") {
			what = "source"
		}
		return nil, noSuchParam(what, ch.Source, "source")
	}
	ch.ID, ch.Created = newID("ch_3"), s.now().Unix()
	rec := &record{Op: opCharge, Charge: ch}
	if card.decline != "" {
		ch.Status, ch.Decline, ch.Captured = "failed", card.decline, false
		rec.event("charge.failed")
		d := declines[card.decline]
		return rec, &apiError{
			Status: http.StatusPaymentRequired, Type: typeCard, Code: d.code, DeclineCode: card.decline,
			Message: d.message, Param: d.param, Charge: ch.ID,
		}
	}
	if card.debit {
		rec.debit(ch)
		return rec, nil
	}
	ch.Status = "succeeded"
	if ch.Captured {
		ch.AmountCaptured = ch.Amount
	}
	rec.event("charge.succeeded")
	if card.dispute && ch.Captured {
		// Stripe answers the charge first and disputes it right afterwards.
		addDispute(rec, ch, DisputeTerms{})
	}
	return rec, nil
}

func (s *Server) captureCharge(c *call, id string) (work, *apiError) {
	p := c.params
	if bad := p.allow(captureParams, "expand transfer_data"); bad != nil {
		return nil, bad
	}
	amount, given, bad := p.positive("amount")
	if bad != nil {
		return nil, bad
	}
	if bad := checkTexts(p); bad != nil {
		return nil, bad
	}
	return func(st *state) (*record, *apiError) {
		e := st.charges[id]
		if e == nil || e.cur.Live != c.live {
			return nil, noSuch("charge", id, "charge")
		}
		ch := *e.cur
		switch {
		case ch.Intent != "":
			return nil, invalid("", "", "Charge %s belongs to PaymentIntent %s: capture that one.", id, ch.Intent)
		case ch.Status != succeeded:
			return nil, invalid("", "", "Charge %s is %s and cannot be captured.", id, ch.Status)
		case ch.Captured:
			return nil, invalid("charge_already_captured", "", "Charge %s has already been captured.", id)
		case ch.Lapsed:
			return nil, invalid("charge_expired_for_capture", "", "Charge %s can no longer be captured: its authorization has expired.", id)
		case ch.AmountRefunded > 0:
			return nil, invalid("charge_already_refunded", "", "Charge %s has already been refunded.", id)
		case given && amount > ch.Amount:
			return nil, invalid("amount_too_large", "amount", "You cannot capture %s of charge %s, which is for %s.",
				money(amount, ch.Currency), id, money(ch.Amount, ch.Currency))
		}
		if !given {
			amount = ch.Amount
		}
		rec := &record{Op: opCapture}
		s.capture(rec, &ch, amount)
		return rec, nil
	}, nil
}

// capture takes amount of what was authorised, and lets go of the rest. ch is the caller's to
// change.
func (s *Server) capture(rec *record, ch *charge, amount int64) {
	ch.Captured, ch.AmountCaptured = true, amount
	rec.Charge = ch
	if rest := ch.Amount - amount; rest > 0 {
		s.letGo(rec, ch, rest)
	}
	rec.event("charge.captured")
}

// letGo gives back what was authorised and isn't captured. Stripe makes a refund of it, and
// amount_refunded contains it.
func (s *Server) letGo(rec *record, ch *charge, rest int64) {
	ch.AmountRefunded = rest
	rec.Refund = &refund{
		ID: newID("re_3"), Created: s.now().Unix(), Live: ch.Live, Charge: ch.ID, Intent: ch.Intent, Amount: rest, Currency: ch.Currency,
		Status: "succeeded",
	}
}
