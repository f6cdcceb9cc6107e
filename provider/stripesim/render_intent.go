package stripesim

// expandedIntent is an intent with its latest charge in full instead of its id.
type expandedIntent struct {
	*intent
	latest *charge
}

func (x expandedIntent) render(e *enc) { x.write(e, x.latest) }

func (in *intent) render(e *enc) { in.write(e, nil) }

func (in *intent) secret() string { return in.ID + "_secret_" + in.ID[len("pi_3"):] }

func (in *intent) write(e *enc, latest *charge) {
	e.open()
	e.text("id", in.ID)
	e.text("object", "payment_intent")
	e.num("amount", in.Amount)
	capturable := int64(0)
	if in.Status == needsCapture {
		capturable = in.Amount
	}
	e.num("amount_capturable", capturable)
	e.raw("amount_details", `{"tip":{}}`)
	e.num("amount_received", in.Received)
	e.nulls("application", "application_fee_amount", "automatic_payment_methods")
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
	e.opt("customer", in.Customer)
	e.opt("description", in.Description)
	e.nulls("invoice")
	if in.Failure != nil {
		e.key("last_payment_error")
		in.Failure.inside(e)
		e.b = append(e.b, ',')
	} else {
		e.nulls("last_payment_error")
	}
	if latest != nil {
		e.object("latest_charge", latest)
	} else {
		e.opt("latest_charge", in.Charge)
	}
	e.flag("livemode", in.Live)
	e.metadata(in.Metadata)
	in.renderAction(e)
	e.nulls("on_behalf_of")
	e.opt("payment_method", in.Method)
	e.nulls("payment_method_configuration_details")
	e.raw("payment_method_options", `{"card":{"installments":null,"mandate_options":null,"network":null,"request_three_d_secure":"automatic"}}`)
	e.raw("payment_method_types", `["card"]`)
	e.nulls("processing")
	e.opt("receipt_email", in.ReceiptEmail)
	e.nulls("review", "setup_future_usage", "shipping", "source")
	e.opt("statement_descriptor", in.Descriptor)
	e.opt("statement_descriptor_suffix", in.Suffix)
	e.text("status", in.Status)
	e.nulls("transfer_data", "transfer_group")
	e.close()
}

// renderAction says what the payer has to do. The address leads nowhere: POST /_sim/authenticate does it for them.
func (in *intent) renderAction(e *enc) {
	address := "https://hooks.stripe.com/3d_secure_2/hosted?payment_intent=" + in.ID + "&payment_intent_client_secret=" + in.secret() +
		"&publishable_key=pk_test_simulator"
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

func (d *dispute) render(e *enc) {
	e.open()
	e.text("id", d.ID)
	e.text("object", "dispute")
	e.num("amount", d.Amount)
	e.raw("balance_transactions", "[]")
	e.text("charge", d.Charge)
	e.num("created", d.Created)
	e.text("currency", d.Currency)
	e.raw("evidence", "{}")
	e.key("evidence_details")
	e.open()
	e.num("due_by", d.Created+7*86400)
	e.raw("has_evidence", "false")
	e.raw("past_due", "false")
	e.raw("submission_count", "0")
	e.close()
	e.b = append(e.b, ',')
	e.flag("is_charge_refundable", d.Status == "won")
	e.flag("livemode", d.Live)
	e.raw("metadata", "{}")
	e.text("network_reason_code", "10.4")
	e.opt("payment_intent", d.Intent)
	e.text("reason", "fraudulent")
	status := d.Status
	if status == "" {
		status = "needs_response"
	}
	e.text("status", status)
	e.close()
}
