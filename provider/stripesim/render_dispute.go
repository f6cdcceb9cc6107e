package stripesim

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
	due := d.DueBy
	if due == 0 {
		due = d.Created + 7*86400
	}
	e.num("due_by", due)
	e.flag("has_evidence", d.Submissions > 0)
	e.raw("past_due", "false")
	e.num("submission_count", d.Submissions)
	e.close()
	e.b = append(e.b, ',')
	e.flag("is_charge_refundable", d.refundable())
	e.flag("livemode", d.Live)
	e.raw("metadata", "{}")
	e.text("network_reason_code", "10.4")
	e.opt("payment_intent", d.Intent)
	reason := d.Reason
	if reason == "" {
		reason = "fraudulent"
	}
	e.text("reason", reason)
	e.text("status", d.status())
	e.close()
}

func (w *warning) render(e *enc) {
	e.open()
	e.text("id", w.ID)
	e.text("object", "radar.early_fraud_warning")
	e.flag("actionable", w.Actionable)
	e.text("charge", w.Charge)
	e.num("created", w.Created)
	e.text("fraud_type", w.FraudType)
	e.flag("livemode", w.Live)
	e.opt("payment_intent", w.Intent)
	e.close()
}
