package stripesim

import "strings"

// manual reads how the money is taken: at once or by a capture.
func (p params) manual() (bool, *apiError) {
	if v := p.get("confirmation_method"); v != "" && v != "automatic" {
		return false, invalid("", "confirmation_method", "The simulator only has automatic confirmation.")
	}
	for _, f := range p {
		if strings.HasPrefix(f.K, "payment_method_types") && f.V != "card" {
			return false, invalid("", "payment_method_types", "The payment method type %q is invalid. The simulator has cards.", f.V)
		}
	}
	v := p.get("capture_method")
	if v != "" && !has("automatic automatic_async manual", v) {
		return false, invalid("", "capture_method", "Invalid capture_method: must be one of automatic, automatic_async, or manual")
	}
	return v == "manual", nil
}

func (p params) confirmation(key string) (how confirmation, bad *apiError) {
	how = confirmation{returnURL: p.get("return_url"), key: key}
	if u := how.returnURL; u != "" && !strings.Contains(u, "://") {
		return how, invalid("url_invalid", "return_url", "Not a valid URL")
	}
	how.offSession, bad = p.boolean("off_session", false)
	return how, bad
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
	if pays == "" {
		return nil
	}
	token, isToken := pays, strings.HasPrefix(pays, "tok_")
	method := newID("pm_1")
	if rest, test := strings.CutPrefix(pays, "pm_card_"); test {
		token = "tok_" + rest
	} else if !isToken {
		token = ""
		if cust := st.customer(in.Customer, in.Live); cust != nil && cust.Source != "" && pays == cust.defaultSource() {
			token, method = cust.Source, pays
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

// attachDefault lets the customer's default pay, which Stripe does only for an intent that is created and confirmed in one call.
func (in *intent) attachDefault(st *state) *apiError {
	if cust := st.customer(in.Customer, in.Live); cust != nil && cust.Source != "" {
		in.Source, in.Method, in.Status = cust.Source, cust.defaultSource(), needsConfirm
		return nil
	}
	return in.unexpected("You cannot confirm this PaymentIntent because it's missing a payment method.")
}
