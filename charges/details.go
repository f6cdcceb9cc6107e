package charges

import (
	"encoding/json"

	"paidonce/db"
	"paidonce/provider"
)

// Details are what the provider tells of a charge beside its state, with Stripe's names and its
// nulls.
type Details struct {
	BalanceTransaction   *string          `json:"balance_transaction"`
	PaymentMethodDetails *PaymentMethod   `json:"payment_method_details"`
	ReceiptURL           *provider.Secret `json:"receipt_url"`

	// what they are made of, and what is stored; exported, since fmt would print a secret in a
	// field that is not
	Known provider.Details `json:"-"`
}

// PaymentMethod is what a charge was paid with. Of another type than a card only the type is told.
type PaymentMethod struct {
	Card *Card  `json:"card,omitempty"`
	Type string `json:"type"`
}

// Card is what may be shown of a card.
type Card struct {
	Brand    *string `json:"brand"`
	Country  *string `json:"country"`
	ExpMonth *int64  `json:"exp_month"`
	ExpYear  *int64  `json:"exp_year"`
	Funding  *string `json:"funding"`
	Last4    *string `json:"last4"`
	Network  *string `json:"network"`
	Wallet   *Wallet `json:"wallet"`
}

// Wallet is where the payer keeps a card.
type Wallet struct {
	Type string `json:"type"`
}

func detailsOf(d provider.Details) Details {
	out := Details{
		BalanceTransaction: db.OrNil(d.BalanceTransaction), ReceiptURL: orNull(d.ReceiptURL), Known: d,
	}
	if d.Method != "" {
		out.PaymentMethodDetails = &PaymentMethod{Type: d.Method}
	}
	if d.Method == "card" {
		out.PaymentMethodDetails.Card = &Card{
			Brand: db.OrNil(d.Brand), Country: db.OrNil(d.Country), ExpMonth: orNull(d.ExpMonth),
			ExpYear: orNull(d.ExpYear), Funding: db.OrNil(d.Funding), Last4: db.OrNil(d.Last4),
			Network: db.OrNil(d.Network),
		}
		if d.Wallet != "" {
			out.PaymentMethodDetails.Card.Wallet = &Wallet{d.Wallet}
		}
	}
	return out
}

// orNull is [db.OrNil] for what is not a plain text.
func orNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// storedDetails is how details are kept: as JSON, or not at all while nothing is known.
func storedDetails(d provider.Details) (*string, error) {
	if d == (provider.Details{}) {
		return nil, nil //nolint:nilnil // NULL
	}
	text, err := jsonOf(&d)
	return &text, err
}

func readDetails(stored *string) (d provider.Details, err error) {
	if stored != nil {
		err = json.Unmarshal([]byte(*stored), &d)
	}
	return d, err
}

// learn returns the stored details once newer ones are known: the same text if they say nothing
// new.
func learn(stored *string, newer provider.Details) (*string, error) {
	known, err := readDetails(stored)
	if err != nil || known.With(newer) == known {
		return stored, err
	}
	return storedDetails(known.With(newer))
}
