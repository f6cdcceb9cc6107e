package stripe

import "paidonce/provider"

// wireMethod is how a charge was paid. Each type has a member of its own, of which only a card's is
// shown.
type wireMethod struct {
	Type text             `json:"type"`
	Card object[wireCard] `json:"card"`
}

type wireCard struct {
	Brand    text   `json:"brand"`
	Country  text   `json:"country"`
	ExpMonth amount `json:"exp_month"`
	ExpYear  amount `json:"exp_year"`
	Funding  text   `json:"funding"`
	Last4    text   `json:"last4"`
	Network  text   `json:"network"`
	Wallet   object[struct {
		Type text `json:"type"`
	}] `json:"wallet"`
}

func (p *Provider) details(c *chargeFields) provider.Details {
	out := provider.Details{
		ReceiptURL:         provider.Secret(webAddress(string(c.ReceiptURL))),
		BalanceTransaction: p.clean(string(c.BalanceTransaction)),
	}
	m := c.Method.at
	if m == nil {
		return out
	}
	out.Method = p.clean(string(m.Type))
	if card := m.Card.at; card != nil && m.Type == "card" {
		out.Card = provider.Card{
			Brand: p.clean(string(card.Brand)), Last4: p.clean(string(card.Last4)), Country: p.clean(string(card.Country)),
			Funding: p.clean(string(card.Funding)), Network: p.clean(string(card.Network)),
			ExpMonth: within(card.ExpMonth.n, 12), ExpYear: within(card.ExpYear.n, 9999),
		}
		if w := card.Wallet.at; w != nil {
			out.Wallet = p.clean(string(w.Type))
		}
	}
	return out
}

// within is a number from 1 to most, or 0 for any other.
func within(n, most int64) int64 {
	if n < 1 || n > most {
		return 0
	}
	return n
}
