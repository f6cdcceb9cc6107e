package paidonce

import (
	"context"
	"net/http"
	"slices"

	"paidonce/sdk/go/rest"
)

const intents = "/v1/payment_intents"

// CreatePaymentIntent makes a payment intent once for the operation's name, and with Confirm
// confirms it.
func (c *Client) CreatePaymentIntent(
	ctx context.Context, operation string, p PaymentIntentParams,
) (*Result[PaymentIntent], error) {
	if wholeCharge(p.Expand) {
		return nil, errWholeCharge
	}
	return run[PaymentIntent](ctx, c, operation, intents, p)
}

// ConfirmPaymentIntent charges what an intent was made for. After a decline, confirm it again under
// another operation's name.
func (c *Client) ConfirmPaymentIntent(
	ctx context.Context, operation, id string, p PaymentIntentConfirmParams,
) (*Result[PaymentIntent], error) {
	if wholeCharge(p.Expand) {
		return nil, errWholeCharge
	}
	return c.onIntent(ctx, operation, id, "/confirm", p)
}

// CapturePaymentIntent takes the money of an intent that was made to be captured.
func (c *Client) CapturePaymentIntent(
	ctx context.Context, operation, id string, p PaymentIntentCaptureParams,
) (*Result[PaymentIntent], error) {
	if wholeCharge(p.Expand) {
		return nil, errWholeCharge
	}
	return c.onIntent(ctx, operation, id, "/capture", p)
}

// CancelPaymentIntent ends an intent that nobody has paid, or lets go of what it holds.
func (c *Client) CancelPaymentIntent(
	ctx context.Context, operation, id string, p PaymentIntentCancelParams,
) (*Result[PaymentIntent], error) {
	if wholeCharge(p.Expand) {
		return nil, errWholeCharge
	}
	return c.onIntent(ctx, operation, id, "/cancel", p)
}

func (c *Client) onIntent(
	ctx context.Context, operation, id, action string, params any,
) (*Result[PaymentIntent], error) {
	name, err := segment(id)
	if err != nil {
		return nil, err
	}
	return run[PaymentIntent](ctx, c, operation, intents+"/"+name+action, params)
}

// UpdatePaymentIntent changes what the parameters name of an intent; once it is paid or canceled,
// only description, metadata and receipt_email can be changed.
func (c *Client) UpdatePaymentIntent(
	ctx context.Context, id string, p PaymentIntentUpdateParams,
) (*Result[PaymentIntent], error) {
	if wholeCharge(p.Expand) {
		return nil, errWholeCharge
	}
	return send[PaymentIntent](ctx, c, http.MethodPost, intents+"/", id, "", "payment_intent", p)
}

// PaymentIntent reads a payment intent as it is now.
func (c *Client) PaymentIntent(ctx context.Context, id string) (*Result[PaymentIntent], error) {
	return retrieve[PaymentIntent](ctx, c, intents+"/", id, "payment_intent")
}

// wholeCharge reports whether the answer would have a whole charge, which could not be read.
func wholeCharge(expand []rest.PaymentIntentExpand) bool {
	return slices.Contains(expand, rest.PaymentIntentExpandLatestCharge)
}
