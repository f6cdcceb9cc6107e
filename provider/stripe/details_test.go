package stripe_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"paidonce/provider"
)

// Whatever Stripe says of how a charge was paid, the charge is known; what cannot be read of it is
// left out.
func TestDetails(t *testing.T) {
	t.Parallel()
	card := func(c provider.Card) provider.Details {
		return provider.Details{Method: "card", Card: c}
	}
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		members string
		want    provider.Details
	}{
		"whole": {
			`"payment_method_details":{"type":"card","card":{"brand":"visa","last4":"4242","exp_month":2,"exp_year":2031,"country":"DE","funding":"debit","network":"visa","wallet":{"type":"apple_pay","apple_pay":{}},"fingerprint":"x"}}`,
			card(provider.Card{Brand: "visa", Last4: "4242", Country: "DE", Funding: "debit", Network: "visa", ExpMonth: 2, ExpYear: 2031, Wallet: "apple_pay"}),
		},
		"another type":        {`"payment_method_details":{"type":"us_bank_account","us_bank_account":{"last4":"6789"},"card":{"brand":"visa"}}`, provider.Details{Method: "us_bank_account"}},
		"receipt, books":      {`"receipt_url":"https://pay.stripe.com/receipts/a_sk_b?s=ap","balance_transaction":"txn_1"`, provider.Details{ReceiptURL: "https://pay.stripe.com/receipts/a_sk_b?s=ap", BalanceTransaction: "txn_1"}},
		"expanded books":      {`"balance_transaction":{"id":"txn_1","fee":7}`, provider.Details{BalanceTransaction: "txn_1"}},
		"null":                {`"payment_method_details":null,"receipt_url":null,"balance_transaction":null`, provider.Details{}},
		"other shapes":        {`"payment_method_details":[1],"receipt_url":{"a":1},"balance_transaction":7`, provider.Details{}},
		"a card that is text": {`"payment_method_details":{"type":"card","card":"visa"}`, provider.Details{Method: "card"}},
		"a type that is none": {`"payment_method_details":{"type":7,"card":{"brand":"visa"}}`, provider.Details{}},
		"odd members":         {`"payment_method_details":{"type":"card","card":{"brand":7,"last4":[],"exp_month":13,"exp_year":-1,"wallet":"none"}}`, card(provider.Card{})},
		"months in words":     {`"payment_method_details":{"type":"card","card":{"exp_month":"May","exp_year":null}}`, card(provider.Card{})},
		"too long":            {fmt.Sprintf(`"receipt_url":"https://a.example/%s","payment_method_details":{"type":"card","card":{"brand":"%s"}}`, long, long), card(provider.Card{Brand: long[:500]})},
		"no web address":      {`"receipt_url":"javascript:alert(1)"`, provider.Details{}},
		"a key":               {`"payment_method_details":{"type":"card","card":{"brand":"` + testKey + `\u0000"}}`, card(provider.Card{Brand: "[key] "})},
	} {
		p := answering(t, 200, nil, goodCharge(`"livemode":false`, `"livemode":false,`+c.members))
		out, err := p.Charge(context.Background(), &ordinary)
		if err != nil || out.Charge == nil || out.Charge.Details != c.want {
			t.Errorf("%s: got %#v, %v", name, out.Charge, err)
			continue
		}
		if shown := fmt.Sprintf("%v %+v %#v", out.Charge.Details, out.Charge.Details, *out.Charge); strings.Contains(shown, "receipts/") {
			t.Errorf("%s: a log would show %s", name, shown)
		}
	}
}
