package charges

import (
	"context"
	"encoding/json"

	"paidonce/db"
	"paidonce/provider"
)

// PaymentIntent is a payment intent as clients see it: the fields of Stripe's object that make
// sense here, with its names and types, and one of our own, reference. Its id is the provider's.
type PaymentIntent struct {
	ID     string `json:"id"`
	Object string `json:"object"`
	// minor units, as are the two below
	Amount                  int64                      `json:"amount"`
	AmountCapturable        int64                      `json:"amount_capturable"`
	AmountReceived          int64                      `json:"amount_received"`
	AutomaticPaymentMethods *provider.AutomaticMethods `json:"automatic_payment_methods"`
	CanceledAt              *int64                     `json:"canceled_at"` // unix seconds
	CancellationReason      *string                    `json:"cancellation_reason"`
	CaptureMethod           string                     `json:"capture_method"`
	ClientSecret            *provider.Secret           `json:"client_secret"` // not in events
	ConfirmationMethod      string                     `json:"confirmation_method"`
	Created                 int64                      `json:"created"` // unix seconds
	Currency                string                     `json:"currency"`
	Customer                *string                    `json:"customer"`
	Description             *string                    `json:"description"`
	LastPaymentError        *PaymentError              `json:"last_payment_error"`
	LatestCharge            *ChargeRef                 `json:"latest_charge"` // our charge
	Livemode                bool                       `json:"livemode"`
	Metadata                map[string]string          `json:"metadata"`
	NextAction              *IntentAction              `json:"next_action"`
	PaymentMethod           *string                    `json:"payment_method"`
	PaymentMethodTypes      []string                   `json:"payment_method_types"`
	ReceiptEmail            *string                    `json:"receipt_email"`
	// what is paid for
	Reference                 *string `json:"reference,omitempty"`
	SetupFutureUsage          *string `json:"setup_future_usage"`
	StatementDescriptorSuffix *string `json:"statement_descriptor_suffix"`
	Status                    string  `json:"status"`
}

// PaymentError is why the last attempt to pay an intent came to nothing.
type PaymentError struct {
	Charge      string `json:"charge,omitempty"` // our charge, if the provider has recorded one
	Code        string `json:"code,omitempty"`
	DeclineCode string `json:"decline_code,omitempty"`
	Message     string `json:"message"`
	Param       string `json:"param,omitempty"`
	Type        string `json:"type"`
}

// IntentAction is what the payer has to do next, as Stripe writes it.
type IntentAction struct {
	RedirectToURL *IntentRedirect `json:"redirect_to_url,omitempty"`
	Type          string          `json:"type"`
	// the client secret is all it needs
	UseStripeSDK *struct{} `json:"use_stripe_sdk,omitempty"`
}

// IntentRedirect is where to send the payer, and where the payer comes back to.
type IntentRedirect struct {
	ReturnURL *string `json:"return_url"`
	URL       string  `json:"url"`
}

// paymentTerms is what is stored of [PaymentTerms], and of what else an intent was made with.
type paymentTerms struct {
	Automatic   *provider.AutomaticMethods `json:"automatic,omitempty"`
	Types       []string                   `json:"types,omitempty"`
	FutureUsage string                     `json:"future_usage,omitempty"`
}

// withTypes returns stored terms with the types of means of payment that the provider shows, if it
// shows any: where the request names none, the provider chooses them.
func withTypes(stored []byte, types []string) []byte {
	var terms paymentTerms
	if len(types) == 0 || json.Unmarshal(stored, &terms) != nil {
		return stored
	}
	terms.Types = types
	stored, _ = json.Marshal(terms) //nolint:errchkjson // texts alone
	return stored
}

// clientIntent is a payment intent of a client with its charge, as they are stored.
type clientIntent struct {
	intent db.PaymentIntent
	charge db.Charge
}

// status is one of Stripe's seven.
func (i clientIntent) status() provider.IntentStatus {
	switch c := i.charge; {
	case released(c), c.Status == string(provider.Failed):
		return provider.IntentCanceled
	case c.Status == string(provider.Succeeded) && c.Captured:
		return provider.IntentSucceeded
	case c.Status == string(provider.Succeeded):
		return provider.IntentRequiresCapture
	// the provider has a charge, or an operation whose outcome is not known may have made one
	case c.ProviderID != nil, c.CaptureOperationID != nil && !releasing(c):
		return provider.IntentProcessing
	}
	return provider.IntentStatus(i.intent.ProviderStatus)
}

func (i clientIntent) render() (PaymentIntent, error) {
	charge, err := fromRow(i.charge)
	if err != nil {
		return PaymentIntent{}, err
	}
	var terms paymentTerms
	if err := json.Unmarshal(i.intent.Terms, &terms); err != nil {
		return PaymentIntent{}, err
	}
	p := PaymentIntent{
		ID: i.intent.ID, Object: "payment_intent", Amount: charge.Amount,
		AutomaticPaymentMethods: terms.Automatic, CaptureMethod: "automatic",
		ConfirmationMethod: "automatic", Created: i.intent.CreatedAt.Unix(),
		Currency: charge.Currency, Customer: charge.Customer, Description: charge.Description,
		Livemode: charge.Livemode, Metadata: charge.Metadata,
		PaymentMethod: i.intent.PaymentMethod, PaymentMethodTypes: terms.Types,
		ReceiptEmail: charge.ReceiptEmail, Reference: charge.Reference,
		SetupFutureUsage:          db.OrNil(terms.FutureUsage),
		StatementDescriptorSuffix: charge.StatementDescriptorSuffix, Status: string(i.status()),
	}
	if i.intent.LatestCharge != nil {
		p.LatestCharge = &ChargeRef{ID: *i.intent.LatestCharge}
	}
	if !i.charge.Capture {
		p.CaptureMethod = "manual"
	}
	if i.intent.ClientSecret != nil {
		secret := provider.Secret(*i.intent.ClientSecret)
		p.ClientSecret = &secret
	}
	if p.PaymentMethodTypes == nil {
		p.PaymentMethodTypes = []string{}
	}
	switch i.status() {
	case provider.IntentSucceeded:
		p.AmountReceived = charge.AmountCaptured
	case provider.IntentRequiresCapture:
		p.AmountCapturable = charge.Amount
	case provider.IntentRequiresAction:
		p.NextAction = i.nextAction(charge.NextAction)
	case provider.IntentCanceled:
		p.CancellationReason = i.intent.CancellationReason
		if i.intent.CanceledAt != nil {
			at := i.intent.CanceledAt.Unix()
			p.CanceledAt = &at
		}
	}
	if e := lastErrorOf(i); e.Type != "" && i.charge.ProviderID == nil {
		p.LastPaymentError = &e.PaymentError
	}
	return p, nil
}

func (i clientIntent) nextAction(n *NextAction) *IntentAction {
	switch {
	case n == nil:
		return nil
	case n.RedirectToURL != nil:
		return &IntentAction{
			Type: n.Type,
			RedirectToURL: &IntentRedirect{
				ReturnURL: i.intent.ReturnUrl, URL: n.RedirectToURL.URL,
			},
		}
	}
	return &IntentAction{Type: n.Type, UseStripeSDK: &struct{}{}}
}

// WithoutSecrets is an intent without what lets somebody go on with the payment, as a charge is.
func (p PaymentIntent) WithoutSecrets() PaymentIntent {
	p.ClientSecret = nil
	if p.NextAction != nil {
		p.NextAction = &IntentAction{Type: p.NextAction.Type}
	}
	if p.LatestCharge != nil {
		latest := p.LatestCharge.withoutSecrets()
		p.LatestCharge = &latest
	}
	return p
}

// showLatest puts the whole latest charge into an intent.
func (s *Store) showLatest(ctx context.Context, i clientIntent, p *PaymentIntent) error {
	switch {
	case p.LatestCharge == nil:
		return nil
	case p.LatestCharge.ID != i.charge.ID:
		return s.readCharges(ctx, i.charge.AccountID, p.LatestCharge)
	}
	whole, err := fromRow(i.charge)
	p.LatestCharge.whole = &whole
	return err
}
