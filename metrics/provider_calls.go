package metrics

import (
	"context"
	"time"

	"paidonce/provider"
)

// Provider returns p, measured.
func (m *Metrics) Provider(p provider.Provider) provider.Provider { return measured{p, &m.provider} }

// measured counts each call and hands it on as it is. It does not embed the port: a method that the port gets must be counted here, too.
type measured struct {
	provider provider.Provider
	calls    *providerCalls
}

// counted counts a call that has just ended. What came of it is not looked at after an error: it means nothing then.
func counted[T any](p measured, c call, began time.Time, got T, err error, of func(T) result) (T, error) {
	if err != nil {
		p.calls.count(c, began, failed(err))
	} else {
		p.calls.count(c, began, of(got))
	}
	return got, err
}

func (p measured) Charge(ctx context.Context, r provider.ChargeRequest) (provider.ChargeOutcome, error) {
	began := time.Now()
	got, err := p.provider.Charge(ctx, r)
	return counted(p, callCharge, began, got, err, ofCharge)
}

func (p measured) FindCharge(ctx context.Context, l provider.Lookup) ([]provider.Charge, error) {
	began := time.Now()
	got, err := p.provider.FindCharge(ctx, l)
	return counted(p, callFindCharge, began, got, err, ofLookup)
}

func (p measured) GetCharge(ctx context.Context, id string) (*provider.Charge, error) {
	began := time.Now()
	got, err := p.provider.GetCharge(ctx, id)
	return counted(p, callGetCharge, began, got, err, ofRead)
}

func (p measured) Capture(ctx context.Context, r provider.CaptureRequest) (provider.ChargeOutcome, error) {
	began := time.Now()
	got, err := p.provider.Capture(ctx, r)
	return counted(p, callCapture, began, got, err, ofCharge)
}

func (p measured) Refund(ctx context.Context, r provider.RefundRequest) (provider.RefundOutcome, error) {
	began := time.Now()
	got, err := p.provider.Refund(ctx, r)
	return counted(p, callRefund, began, got, err, ofRefund)
}

func (p measured) FindRefund(ctx context.Context, l provider.Lookup) ([]provider.Refund, error) {
	began := time.Now()
	got, err := p.provider.FindRefund(ctx, l)
	return counted(p, callFindRefund, began, got, err, ofLookup)
}

func (p measured) GetRefund(ctx context.Context, id string) (*provider.Refund, error) {
	began := time.Now()
	got, err := p.provider.GetRefund(ctx, id)
	return counted(p, callGetRefund, began, got, err, ofRead)
}

func (p measured) GetDispute(ctx context.Context, id string) (*provider.Dispute, error) {
	began := time.Now()
	got, err := p.provider.GetDispute(ctx, id)
	return counted(p, callGetDispute, began, got, err, ofRead)
}

func (p measured) CreateIntent(ctx context.Context, r provider.ChargeRequest, returnURL string) (provider.IntentOutcome, error) {
	began := time.Now()
	got, err := p.provider.CreateIntent(ctx, r, returnURL)
	return counted(p, callCreateIntent, began, got, err, ofCreation)
}

func (p measured) ConfirmIntent(ctx context.Context, r provider.ConfirmRequest) (provider.IntentOutcome, error) {
	began := time.Now()
	got, err := p.provider.ConfirmIntent(ctx, r)
	return counted(p, callConfirmIntent, began, got, err, ofIntent)
}

func (p measured) GetIntent(ctx context.Context, id string) (*provider.Intent, error) {
	began := time.Now()
	got, err := p.provider.GetIntent(ctx, id)
	return counted(p, callGetIntent, began, got, err, ofRead)
}

func (p measured) FindIntent(ctx context.Context, l provider.Lookup) ([]provider.Intent, error) {
	began := time.Now()
	got, err := p.provider.FindIntent(ctx, l)
	return counted(p, callFindIntent, began, got, err, ofLookup)
}

// Now asks nobody, so it is not counted.
func (p measured) Now() (time.Time, bool) { return p.provider.Now() }

// Told asks nobody, so there is nothing to count.
func (p measured) Told(payload []byte) (*provider.Charge, *provider.Refund) {
	return p.provider.Told(payload)
}

func (p measured) Account(ctx context.Context) (provider.Account, error) {
	began := time.Now()
	got, err := p.provider.Account(ctx)
	return counted(p, callAccount, began, got, err, ofWhole[provider.Account])
}

func ofWhole[T any](T) result { return succeeded }

// ListCharges, and the two below, are timed with what their callers do with each object.
func (p measured) ListCharges(ctx context.Context, from, to time.Time, each func(provider.Charge) error) error {
	return p.list(callListCharges, func() error { return p.provider.ListCharges(ctx, from, to, each) })
}

func (p measured) ListRefunds(ctx context.Context, from, to time.Time, each func(provider.Refund) error) error {
	return p.list(callListRefunds, func() error { return p.provider.ListRefunds(ctx, from, to, each) })
}

func (p measured) ListIntents(ctx context.Context, from, to time.Time, each func(provider.Intent) error) error {
	return p.list(callListIntents, func() error { return p.provider.ListIntents(ctx, from, to, each) })
}

func (p measured) list(c call, walk func() error) error {
	began := time.Now()
	err := walk()
	_, err = counted(p, c, began, struct{}{}, err, ofWhole[struct{}])
	return err
}
