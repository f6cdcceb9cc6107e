package provider

// Details are what a provider tells of a charge beside its state, as far as it does: empty texts
// and zeros are not known. Each charge is stored with them, as JSON of short names. Fields may be
// added, never renamed.
type Details struct {
	// the provider's id of the entry in its ledger; empty until there is one
	BalanceTransaction string `json:"booked,omitempty"`
	// shows a payer's receipt to whoever has it
	ReceiptURL Secret `json:"receipt,omitempty"`
	// what the charge was paid with, in the provider's word: card, us_bank_account, …
	Method string `json:"method,omitempty"`
	Card          // only of the method card
}

// Card is what may be shown of a card.
type Card struct {
	Brand    string `json:"brand,omitempty"`
	Country  string `json:"country,omitempty"`
	ExpMonth int64  `json:"month,omitempty"`
	ExpYear  int64  `json:"year,omitempty"`
	Funding  string `json:"funding,omitempty"`
	Last4    string `json:"last4,omitempty"`
	Network  string `json:"network,omitempty"`
	Wallet   string `json:"wallet,omitempty"` // the wallet's type, if it is in one
}

// With is what is known once newer details are. The address of a receipt is kept: the provider may
// give another one whenever it is asked.
func (d Details) With(newer Details) Details {
	if newer.BalanceTransaction != "" {
		d.BalanceTransaction = newer.BalanceTransaction
	}
	if newer.Method != "" {
		d.Method, d.Card = newer.Method, newer.Card
	}
	if d.ReceiptURL == "" {
		d.ReceiptURL = newer.ReceiptURL
	}
	return d
}
