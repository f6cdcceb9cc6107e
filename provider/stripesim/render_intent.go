package stripesim

import "strings"

// expandedIntent is an intent with its latest charge in full instead of its id.
type expandedIntent struct {
	*intent
	latest *charge
}

func (x expandedIntent) render(e *enc) { x.write(e, x.latest, false) }

func (in *intent) render(e *enc) { in.write(e, nil, false) }

// publicIntent is an intent with what Stripe shows to a publishable key.
type publicIntent struct{ *intent }

func (x publicIntent) render(e *enc) { x.write(e, nil, true) }

func (in *intent) secret() string { return in.ID + "_secret_" + in.ID[len("pi_3"):] }

func (in *intent) write(e *enc, latest *charge, public bool) {
	e.open()
	e.text("id", in.ID)
	e.text("object", "payment_intent")
	e.num("amount", in.Amount)
	if !public {
		in.renderAmounts(e)
		e.nulls("application", "application_fee_amount")
	}
	in.renderAutomatic(e)
	if in.CanceledAt > 0 {
		e.num("canceled_at", in.CanceledAt)
	} else {
		e.nulls("canceled_at")
	}
	e.opt("cancellation_reason", in.Reason)
	if in.Manual {
		e.text("capture_method", "manual")
	} else {
		e.text("capture_method", "automatic")
	}
	e.text("client_secret", in.secret())
	e.text("confirmation_method", "automatic")
	e.num("created", in.Created)
	e.text("currency", in.Currency)
	if !public {
		e.opt("customer", in.Customer)
	}
	e.opt("description", in.Description)
	if in.Failure != nil {
		e.key("last_payment_error")
		in.Failure.inside(e)
		e.b = append(e.b, ',')
	} else {
		e.nulls("last_payment_error")
	}
	e.flag("livemode", in.Live)
	in.renderAction(e)
	e.opt("payment_method", in.Method)
	in.renderTypes(e)
	e.nulls("processing")
	e.opt("receipt_email", in.ReceiptEmail)
	e.opt("setup_future_usage", in.Future)
	e.nulls("source")
	e.text("status", in.Status)
	if !public {
		in.renderRest(e, latest)
	}
	e.close()
}

func (in *intent) renderAmounts(e *enc) {
	capturable := int64(0)
	if in.Status == needsCapture {
		capturable = in.Amount
	}
	e.num("amount_capturable", capturable)
	e.raw("amount_details", `{"tip":{}}`)
	e.num("amount_received", in.Received)
}

func (in *intent) renderAutomatic(e *enc) {
	if in.Redirects == "" {
		e.nulls("automatic_payment_methods")
		return
	}
	e.raw("automatic_payment_methods", `{"allow_redirects":"`+in.Redirects+`","enabled":true}`)
}

func (in *intent) renderTypes(e *enc) {
	types := in.Types
	if len(types) == 0 {
		types = []string{"card"}
	}
	e.raw("payment_method_types", `["`+strings.Join(types, `","`)+`"]`)
}

// renderRest writes what a browser is not shown.
func (in *intent) renderRest(e *enc, latest *charge) {
	e.nulls("invoice")
	if latest != nil {
		e.object("latest_charge", latest)
	} else {
		e.opt("latest_charge", in.Charge)
	}
	e.metadata(in.Metadata)
	e.nulls("on_behalf_of", "payment_method_configuration_details")
	e.raw("payment_method_options", `{"card":{"installments":null,"mandate_options":null,"network":null,"request_three_d_secure":"automatic"}}`)
	e.nulls("review")
	e.shipping(in.Shipping)
	e.nulls("statement_descriptor")
	e.opt("statement_descriptor_suffix", in.Suffix)
	e.nulls("transfer_data", "transfer_group")
}

// renderAction says what the payer has to do: on the bank's page (bank.go).
func (in *intent) renderAction(e *enc) {
	address := in.bankAddress()
	switch in.Action {
	case "redirect_to_url":
		e.key("next_action")
		e.open()
		e.key("redirect_to_url")
		e.open()
		e.text("return_url", in.ReturnURL)
		e.text("url", address)
		e.close()
		e.b = append(e.b, ',')
		e.text("type", in.Action)
	case "use_stripe_sdk":
		e.key("next_action")
		e.open()
		e.text("type", in.Action)
		e.key("use_stripe_sdk")
		e.open()
		e.text("stripe_js", address)
		e.text("type", "three_d_secure_redirect")
		e.close()
		e.b = append(e.b, ',')
	default:
		e.nulls("next_action")
		return
	}
	e.close()
	e.b = append(e.b, ',')
}
