package metrics

import (
	"context"
	"time"

	"paidonce/provider"
)

// Provider returns a provider that counts the calls of p.
func (m *Metrics) Provider(p provider.Provider) provider.Provider {
	return countingProvider{p, &m.provider}
}

// countingProvider counts each call and passes it on unchanged. It does not embed the interface, so
// that a method that is added to it has to be counted here too.
type countingProvider struct {
	provider provider.Provider
	calls    *providerCalls
}

// counted counts a call that is over, and returns what it returned. After an error the result is
// not looked at. By the port's rule an error is a [provider.Error]; a call that returned any other
// error may have had its effect.
//
// It makes no call itself: thousands may wait in one, each with the frames of its callers.
func counted[T any](
	p countingProvider, call string, of func(T) result, began time.Time, got T, err error,
) (T, error) {
	r := result(provider.KindOf(err))
	if err == nil {
		r = of(got)
	}
	p.calls.count(call, began, r)
	p.calls.noteRight(call, err)
	return got, err
}

func (p countingProvider) Charge(
	ctx context.Context, r *provider.ChargeRequest,
) (provider.ChargeOutcome, error) {
	began := time.Now()
	got, err := p.provider.Charge(ctx, r)
	return counted(p, "charge", ofCharge, began, got, err)
}

func (p countingProvider) Capture(
	ctx context.Context, r provider.CaptureRequest,
) (provider.ChargeOutcome, error) {
	began := time.Now()
	got, err := p.provider.Capture(ctx, r)
	return counted(p, "capture", ofCharge, began, got, err)
}

func (p countingProvider) Refund(
	ctx context.Context, r provider.RefundRequest,
) (provider.RefundOutcome, error) {
	began := time.Now()
	got, err := p.provider.Refund(ctx, r)
	return counted(p, "refund", ofRefund, began, got, err)
}

func (p countingProvider) CreateIntent(
	ctx context.Context, r *provider.ChargeRequest, returnURL string,
) (provider.IntentOutcome, error) {
	began := time.Now()
	got, err := p.provider.CreateIntent(ctx, r, returnURL)
	return counted(p, "create_intent", ofStep, began, got, err)
}

func (p countingProvider) UpdateIntent(
	ctx context.Context, r provider.UpdateIntentRequest,
) (provider.IntentOutcome, error) {
	began := time.Now()
	got, err := p.provider.UpdateIntent(ctx, r)
	return counted(p, "update_intent", ofStep, began, got, err)
}

func (p countingProvider) CancelIntent(
	ctx context.Context, r provider.CancelRequest,
) (provider.IntentOutcome, error) {
	began := time.Now()
	got, err := p.provider.CancelIntent(ctx, r)
	return counted(p, "cancel_intent", ofStep, began, got, err)
}

func (p countingProvider) ConfirmIntent(
	ctx context.Context, r provider.ConfirmRequest,
) (provider.IntentOutcome, error) {
	began := time.Now()
	got, err := p.provider.ConfirmIntent(ctx, r)
	return counted(p, "confirm_intent", ofIntent, began, got, err)
}

func (p countingProvider) FindCharge(
	ctx context.Context, l provider.Lookup,
) ([]provider.Charge, error) {
	began := time.Now()
	got, err := p.provider.FindCharge(ctx, l)
	return counted(p, "find_charge", ofHits, began, got, err)
}

func (p countingProvider) FindRefund(
	ctx context.Context, l provider.Lookup,
) ([]provider.Refund, error) {
	began := time.Now()
	got, err := p.provider.FindRefund(ctx, l)
	return counted(p, "find_refund", ofHits, began, got, err)
}

func (p countingProvider) FindIntent(
	ctx context.Context, l provider.Lookup,
) ([]provider.Intent, error) {
	began := time.Now()
	got, err := p.provider.FindIntent(ctx, l)
	return counted(p, "find_intent", ofHits, began, got, err)
}

func (p countingProvider) RefundsOf(
	ctx context.Context, chargeID string,
) ([]provider.Refund, error) {
	began := time.Now()
	got, err := p.provider.RefundsOf(ctx, chargeID)
	return counted(p, "refunds_of", ofHits, began, got, err)
}

func (p countingProvider) GetCharge(ctx context.Context, id string) (*provider.Charge, error) {
	began := time.Now()
	got, err := p.provider.GetCharge(ctx, id)
	return counted(p, "get_charge", ofRead, began, got, err)
}

func (p countingProvider) GetRefund(ctx context.Context, id string) (*provider.Refund, error) {
	began := time.Now()
	got, err := p.provider.GetRefund(ctx, id)
	return counted(p, "get_refund", ofRead, began, got, err)
}

func (p countingProvider) GetIntent(ctx context.Context, id string) (*provider.Intent, error) {
	began := time.Now()
	got, err := p.provider.GetIntent(ctx, id)
	return counted(p, "get_intent", ofRead, began, got, err)
}

func (p countingProvider) GetDispute(ctx context.Context, id string) (*provider.Dispute, error) {
	began := time.Now()
	got, err := p.provider.GetDispute(ctx, id)
	return counted(p, "get_dispute", ofRead, began, got, err)
}

func (p countingProvider) GetFraudWarning(
	ctx context.Context, id string,
) (*provider.FraudWarning, error) {
	began := time.Now()
	got, err := p.provider.GetFraudWarning(ctx, id)
	return counted(p, "get_fraud_warning", ofRead, began, got, err)
}

func (p countingProvider) Account(ctx context.Context) (provider.Account, error) {
	began := time.Now()
	got, err := p.provider.Account(ctx)
	return counted(p, "account", ofAll, began, got, err)
}

// ListCharges and the other lists are timed including what their callers do with each object.
func (p countingProvider) ListCharges(
	ctx context.Context, from, to time.Time, each func(provider.Charge) error,
) error {
	return p.list("list_charges",
		func() error { return p.provider.ListCharges(ctx, from, to, each) })
}

func (p countingProvider) ListRefunds(
	ctx context.Context, from, to time.Time, each func(provider.Refund) error,
) error {
	return p.list("list_refunds",
		func() error { return p.provider.ListRefunds(ctx, from, to, each) })
}

func (p countingProvider) ListIntents(
	ctx context.Context, from, to time.Time, each func(provider.Intent) error,
) error {
	return p.list("list_intents",
		func() error { return p.provider.ListIntents(ctx, from, to, each) })
}

func (p countingProvider) ListDisputes(
	ctx context.Context, from, to time.Time, each func(provider.Dispute) error,
) error {
	return p.list("list_disputes",
		func() error { return p.provider.ListDisputes(ctx, from, to, each) })
}

func (p countingProvider) list(call string, walk func() error) error {
	began := time.Now()
	_, err := counted(p, call, ofAll, began, struct{}{}, walk())
	return err
}

// Now and EventObject make no calls, so there is nothing to count.

// Now implements [provider.Provider].
func (p countingProvider) Now() (time.Time, bool) { return p.provider.Now() }

// EventObject implements [provider.Provider].
func (p countingProvider) EventObject(payload []byte) provider.EventObject {
	return p.provider.EventObject(payload)
}
