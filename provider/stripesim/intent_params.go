package stripesim

import "strings"

// manual reads how the money is taken: at once or by a capture.
func (p params) manual() (bool, *apiError) {
	if v := p.get("confirmation_method"); v != "" && v != "automatic" {
		return false, invalid("", "confirmation_method", "The simulator only has automatic confirmation.")
	}
	v := p.get("capture_method")
	if v != "" && !has("automatic automatic_async manual", v) {
		return false, invalid("", "capture_method", "Invalid capture_method: must be one of automatic, automatic_async, or manual")
	}
	return v == "manual", nil
}

func (p params) confirmation(c *call) (how confirmation, bad *apiError) {
	how = confirmation{returnURL: p.get("return_url"), key: c.key, bank: c.origin}
	if u := how.returnURL; u != "" && !strings.Contains(u, "://") {
		return how, invalid("url_invalid", "return_url", "Not a valid URL")
	}
	if how.offSession, bad = p.boolean("off_session", false); bad != nil {
		return how, bad
	}
	if how.errorOnAction, bad = p.boolean("error_on_requires_action", false); bad != nil {
		return how, bad
	}
	how.future, bad = p.future()
	return how, bad
}

// future reads for which later payments the means of payment is kept.
func (p params) future() (string, *apiError) {
	v := p.get("setup_future_usage")
	if v != "" && !has("off_session on_session", v) {
		return "", invalid("", "setup_future_usage", "Invalid setup_future_usage: must be one of off_session or on_session")
	}
	return v, nil
}

// types reads which kinds of payment methods may pay; none: nothing is said of them.
func (p params) types() ([]string, *apiError) {
	var out []string
	for _, f := range p {
		if !strings.HasPrefix(f.K, "payment_method_types") || f.V == "" {
			continue
		}
		if !has("card link us_bank_account", f.V) {
			return nil, invalid("", "payment_method_types", "The payment method type %q is invalid. The simulator has cards.", f.V)
		}
		out = append(out, f.V)
	}
	return out, nil
}

// waysToPay reads how the payer may pay: as Stripe chooses, with or without methods that redirect,
// which is the default; or with types.
func (p params) waysToPay() (redirects string, types []string, bad *apiError) {
	if types, bad = p.types(); bad != nil {
		return "", nil, bad
	}
	automatic, bad := p.boolean("automatic_payment_methods[enabled]", len(types) == 0)
	if bad != nil {
		return "", nil, bad
	}
	redirects = p.get("automatic_payment_methods[allow_redirects]")
	switch {
	case !automatic:
		return "", types, nil
	case len(types) > 0:
		return "", nil, invalid("", "automatic_payment_methods",
			"You may only specify one of these parameters: automatic_payment_methods, payment_method_types.")
	case redirects == "":
		redirects = "always"
	case !has("always never", redirects):
		return "", nil, invalid("", "automatic_payment_methods[allow_redirects]", "Invalid allow_redirects: must be one of always or never")
	}
	return redirects, nil, nil
}

// refuses says why an intent cannot be confirmed in this way.
func (in *intent) refuses(how confirmation) *apiError {
	switch {
	case how.returnURL == "" && in.Redirects == "always":
		return invalid("", "", "This PaymentIntent is configured to accept payment methods enabled in your Dashboard. Because some of these "+
			"payment methods might redirect your customer off of your page, you must provide a `return_url`. If you don't want to accept "+
			"redirect-based payment methods, set `automatic_payment_methods[enabled]` to `true` and "+
			"`automatic_payment_methods[allow_redirects]` to `never` when creating Setup Intents and Payment Intents.").about(in)
	case how.offSession && in.Future != "":
		return invalid("", "off_session", "You cannot confirm with `off_session=true` when `setup_future_usage` is also set on the "+
			"PaymentIntent, because you cannot set up future usages when processing payments off-session.").about(in)
	}
	return nil
}

// method reads what pays: the name of a payment method, or a token to make one of.
func (p params) method() (string, *apiError) {
	named, data := p.get("payment_method"), ""
	for _, f := range p {
		rest, inside := strings.CutPrefix(f.K, "payment_method_data[")
		switch {
		case !inside || strings.HasPrefix(rest, "billing_details]") || rest == "type]" && f.V == "card":
		case rest == "card][token]":
			data = f.V
		case rest == "type]":
			return "", invalid("", f.K, "The payment method type %q is invalid. The simulator has cards.", f.V)
		default:
			return "", invalid("parameter_unknown", f.K, "The simulator takes cards as tokens: payment_method_data[card][token].")
		}
	}
	switch {
	case named != "" && data != "":
		return "", invalid("", "payment_method", "You may only specify one of payment_method and payment_method_data.")
	case data != "" && !strings.HasPrefix(data, "tok_"):
		return "", invalid("resource_missing", "payment_method_data[card][token]", "No such token: '%s'", data)
	case strings.HasPrefix(named, "tok_"):
		return "", invalid("resource_missing", "payment_method", "No such PaymentMethod: '%s'", named)
	case data != "":
		return data, nil
	}
	return named, nil
}

// attach makes what was named the means of payment. Nothing named changes nothing.
func (in *intent) attach(st *state, pays string) *apiError {
	if pays == "" || pays == in.Method {
		return nil
	}
	token, isToken := pays, strings.HasPrefix(pays, "tok_")
	method := newID("pm_1")
	if rest, test := strings.CutPrefix(pays, "pm_card_"); test {
		token = "tok_" + rest
	} else if pays == "pm_usBankAccount" {
		token = "btok_us_verified"
	} else if !isToken {
		token = ""
		if cust := st.customer(in.Customer, in.Live); cust != nil {
			if paid, has := cust.card(pays); has {
				token, method = paid, pays
			}
		}
	}
	if _, known := testCards[token]; !known {
		if isToken {
			return noSuchParam("token", pays, "payment_method_data[card][token]")
		}
		return noSuchParam("PaymentMethod", pays, "payment_method")
	}
	in.Source, in.Method, in.Status = token, method, needsConfirm
	return nil
}

// attachDefault lets the customer's default pay, which Stripe does only for an intent that is
// created and confirmed in one call.
func (in *intent) attachDefault(st *state) *apiError {
	if cust := st.customer(in.Customer, in.Live); cust != nil && cust.Source != "" {
		in.Source, in.Method, in.Status = cust.Source, cust.defaultSource(), needsConfirm
		return nil
	}
	return in.unexpected("You cannot confirm this PaymentIntent because it's missing a payment method.")
}
