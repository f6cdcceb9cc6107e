package stripesim

import (
	"encoding/json"
	"strconv"
)

// enc writes JSON objects by hand. Rendering is most of what the simulator does under load, and
// reflection over the fifty fields of a charge would cost several times as much.
type enc struct{ b []byte }

func (e *enc) open() { e.b = append(e.b, '{') }

func (e *enc) close() {
	if e.b[len(e.b)-1] == ',' {
		e.b = e.b[:len(e.b)-1]
	}
	e.b = append(e.b, '}')
}

func (e *enc) key(k string) {
	e.b = append(e.b, '"')
	e.b = append(e.b, k...)
	e.b = append(e.b, '"', ':')
}

// raw writes a value that is JSON already.
func (e *enc) raw(k, v string) {
	e.key(k)
	e.b = append(e.b, v...)
	e.b = append(e.b, ',')
}

func (e *enc) text(k, v string) {
	e.key(k)
	e.b = append(appendString(e.b, v), ',')
}

// opt writes null for the empty string.
func (e *enc) opt(k, v string) {
	if v == "" {
		e.raw(k, "null")
		return
	}
	e.text(k, v)
}

func (e *enc) num(k string, v int64) {
	e.key(k)
	e.b = append(strconv.AppendInt(e.b, v, 10), ',')
}

func (e *enc) flag(k string, v bool) { e.raw(k, strconv.FormatBool(v)) }

// nulls writes several fields that have no value here.
func (e *enc) nulls(keys ...string) {
	for _, k := range keys {
		e.raw(k, "null")
	}
}

func (e *enc) metadata(pairs []pair) {
	e.key("metadata")
	e.open()
	for _, p := range pairs {
		e.b = append(appendString(e.b, p.K), ':')
		e.b = append(appendString(e.b, p.V), ',')
	}
	e.close()
	e.b = append(e.b, ',')
}

func (e *enc) object(k string, r renderer) {
	e.key(k)
	r.render(e)
	e.b = append(e.b, ',')
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			q, err := json.Marshal(s)
			if err != nil { // can't happen for a string
				return append(b, `""`...)
			}
			return append(b, q...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func rendered(r renderer) []byte {
	e := enc{b: make([]byte, 0, 3072)}
	r.render(&e)
	return e.b
}

const noAddress = `{"city":null,"country":null,"line1":null,"line2":null,"postal_code":null,"state":null}`

func (c *charge) render(e *enc) {
	suffix := c.ID[len("ch_"):]
	e.open()
	e.text("id", c.ID)
	e.text("object", "charge")
	e.num("amount", c.Amount)
	e.num("amount_captured", c.AmountCaptured)
	e.num("amount_refunded", c.AmountRefunded)
	e.nulls("application", "application_fee", "application_fee_amount")
	if c.AmountCaptured > 0 {
		e.text("balance_transaction", "txn_"+suffix)
	} else {
		e.nulls("balance_transaction")
	}
	e.raw("billing_details", `{"address":`+noAddress+`,"email":null,"name":null,"phone":null}`)
	e.text("calculated_statement_descriptor", c.descriptor())
	e.flag("captured", c.Captured)
	e.num("created", c.Created)
	e.text("currency", c.Currency)
	e.opt("customer", c.Customer)
	e.opt("description", c.Description)
	e.nulls("destination")
	e.opt("dispute", c.Dispute)
	e.flag("disputed", c.Dispute != "")
	e.nulls("failure_balance_transaction")
	card := cardOf(c.Source)
	e.opt("failure_code", declines[c.Decline].code)
	e.opt("failure_message", declines[c.Decline].message)
	e.raw("fraud_details", "{}")
	e.nulls("invoice")
	e.flag("livemode", c.Live)
	e.metadata(c.Metadata)
	e.nulls("on_behalf_of", "order")
	c.renderOutcome(e)
	e.flag("paid", c.Status == "succeeded")
	e.opt("payment_intent", c.Intent)
	if c.Method != "" {
		e.text("payment_method", c.Method)
	} else {
		e.text("payment_method", "card_"+suffix)
	}
	c.renderMethod(e, card)
	e.raw("radar_options", "{}")
	e.opt("receipt_email", c.ReceiptEmail)
	e.nulls("receipt_number")
	if c.Status == "failed" {
		e.nulls("receipt_url")
	} else {
		e.text("receipt_url", "https://pay.stripe.com/receipts/"+c.ID)
	}
	e.flag("refunded", c.AmountRefunded > 0 && c.AmountRefunded == c.Amount)
	c.renderRefunds(e)
	e.nulls("review")
	e.shipping(c.Shipping)
	if c.Intent == "" {
		c.renderSource(e, card)
	} else {
		e.nulls("source")
	}
	e.nulls("source_transfer")
	e.opt("statement_descriptor", c.Descriptor)
	e.opt("statement_descriptor_suffix", c.Suffix)
	e.text("status", c.Status)
	e.nulls("transfer_data", "transfer_group")
	e.close()
}

func (c *charge) descriptor() string {
	if c.Suffix != "" {
		return "SIMULATOR* " + c.Suffix
	}
	return "SIMULATOR"
}

func (c *charge) renderOutcome(e *enc) {
	e.key("outcome")
	e.open()
	if c.Status == "failed" {
		e.text("network_status", "declined_by_network")
		e.text("reason", c.Decline)
		e.text("risk_level", "normal")
		e.num("risk_score", 20)
		e.text("seller_message", "The bank returned the decline code `"+c.Decline+"`.")
		e.text("type", "issuer_declined")
	} else {
		e.text("network_status", "approved_by_network")
		e.nulls("reason")
		e.text("risk_level", "normal")
		e.num("risk_score", 20)
		e.text("seller_message", "Payment complete.")
		e.text("type", "authorized")
	}
	e.close()
	e.b = append(e.b, ',')
}

func (c *charge) renderMethod(e *enc, card cardKind) {
	e.key("payment_method_details")
	e.open()
	if card.debit {
		e.text("type", "us_bank_account")
		e.raw("us_bank_account", `{"account_holder_type":"individual","account_type":"checking","bank_name":"TEST BANK","last4":"`+
			card.last4+`","routing_number":"110000000"}`)
		e.close()
		e.b = append(e.b, ',')
		return
	}
	e.key("card")
	e.open()
	e.num("amount_authorized", c.Amount)
	e.text("brand", card.brand)
	e.raw("checks", `{"address_line1_check":null,"address_postal_code_check":null,"cvc_check":null}`)
	e.text("country", "US")
	e.num("exp_month", 12)
	e.num("exp_year", 2034)
	e.text("fingerprint", "Sim"+card.last4+"Fingerprint")
	e.text("funding", card.funds())
	e.nulls("installments")
	e.text("last4", card.last4)
	e.nulls("mandate")
	e.text("network", card.brand)
	e.nulls("network_token", "three_d_secure", "wallet")
	e.close()
	e.b = append(e.b, ',')
	e.text("type", "card")
	e.close()
	e.b = append(e.b, ',')
}

// renderRefunds names the list and says whether there is something in it; the refunds themselves
// are behind the url.
func (c *charge) renderRefunds(e *enc) {
	e.key("refunds")
	e.open()
	e.text("object", "list")
	e.raw("data", "[]")
	e.flag("has_more", c.AmountRefunded > 0)
	e.text("url", "/v1/charges/"+c.ID+"/refunds")
	e.close()
	e.b = append(e.b, ',')
}

func (c *charge) renderSource(e *enc, card cardKind) {
	e.key("source")
	e.open()
	e.text("id", "card_"+c.ID[len("ch_"):])
	e.text("object", "card")
	e.text("brand", card.display)
	e.text("country", "US")
	e.opt("customer", c.Customer)
	e.num("exp_month", 12)
	e.num("exp_year", 2034)
	e.text("funding", card.funds())
	e.text("last4", card.last4)
	e.raw("metadata", "{}")
	e.nulls("name")
	e.close()
	e.b = append(e.b, ',')
}

func (r *refund) render(e *enc) {
	e.open()
	e.text("id", r.ID)
	e.text("object", "refund")
	e.num("amount", r.Amount)
	e.text("balance_transaction", "txn_"+r.ID[len("re_"):])
	e.text("charge", r.Charge)
	e.num("created", r.Created)
	e.text("currency", r.Currency)
	e.raw("destination_details", `{"card":{"reference_status":"pending","reference_type":"acquirer_reference_number","type":"refund"},"type":"card"}`)
	if r.FailureReason != "" {
		e.text("failure_balance_transaction", "txn_f"+r.ID[len("re_"):])
		e.text("failure_reason", r.FailureReason)
	}
	e.metadata(r.Metadata)
	e.opt("payment_intent", r.Intent)
	e.opt("reason", r.Reason)
	e.nulls("receipt_number", "source_transfer_reversal")
	e.text("status", r.Status)
	e.nulls("transfer_reversal")
	e.close()
}

func (c *customer) render(e *enc) {
	e.open()
	e.text("id", c.ID)
	e.text("object", "customer")
	e.nulls("address")
	e.num("balance", 0)
	e.num("created", c.Created)
	e.nulls("currency")
	if c.Source != "" {
		e.text("default_source", c.defaultSource())
	} else {
		e.nulls("default_source")
	}
	e.flag("delinquent", false)
	e.opt("description", c.Description)
	e.nulls("discount")
	e.opt("email", c.Email)
	e.text("invoice_prefix", "SIM00001")
	e.raw("invoice_settings", `{"custom_fields":null,"default_payment_method":null,"footer":null,"rendering_options":null}`)
	e.flag("livemode", c.Live)
	e.metadata(c.Metadata)
	e.opt("name", c.Name)
	e.opt("phone", c.Phone)
	e.raw("preferred_locales", "[]")
	e.nulls("shipping")
	e.text("tax_exempt", "none")
	e.nulls("test_clock")
	e.close()
}

func (v *event) render(e *enc) {
	e.open()
	e.text("id", v.id)
	e.text("object", "event")
	e.text("api_version", stripeAPI)
	e.num("created", v.created)
	e.key("data")
	e.open()
	e.object("object", v.object)
	e.close()
	e.b = append(e.b, ',')
	e.flag("livemode", v.live)
	e.num("pending_webhooks", 1)
	e.key("request")
	e.open()
	e.opt("id", v.request)
	e.opt("idempotency_key", v.key)
	e.close()
	e.b = append(e.b, ',')
	e.text("type", v.kind)
	e.close()
}
