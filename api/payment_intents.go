package api

import (
	"crypto/rand"
	"slices"

	"github.com/labstack/echo/v4"

	"paidonce/charges"
	"paidonce/problem"
)

// createPaymentIntent makes a payment intent once for the request's key.
func (s *Server) createPaymentIntent(c echo.Context, r *request) error {
	return idempotent(s, c, r, func(p *parameters) (charges.PaymentIntentParams, *problem.Error) {
		return paymentIntentParams(p, r.identity.ReferenceFrom)
	}, s.cfg.Charges.CreatePaymentIntent)
}

// captureMethods are how the money of an intent is taken: as it is authorised, unless by a capture.
var captureMethods = []string{"automatic", "automatic_async", "manual"}

func paymentIntentParams(
	p *parameters, referenceFrom string,
) (charges.PaymentIntentParams, *problem.Error) {
	if e := missingOf(p, "amount", "currency"); e != nil {
		return charges.PaymentIntentParams{}, e
	}
	method, given := p.get("capture_method")
	if given && !slices.Contains(captureMethods, method.text) {
		return charges.PaymentIntentParams{}, invalidParameter("capture_method",
			"capture_method must be automatic, automatic_async or manual.")
	}
	terms, e := paymentTerms(p)
	if e != nil {
		return charges.PaymentIntentParams{}, e
	}
	wanted := charges.PaymentIntentParams{
		Params: commonParams(p, referenceFrom), PaymentTerms: terms, Confirm: p.boolean("confirm"),
		ErrorOnRequiresAction: p.boolean("error_on_requires_action"),
	}
	wanted.WithCharge = p.expands("latest_charge")
	wanted.Source, wanted.Capture = p.text("payment_method"), !given || method.text != "manual"
	return valid(wanted)
}

// paymentTerms is what the parameters say of the means of payment that an intent takes.
func paymentTerms(p *parameters) (charges.PaymentTerms, *problem.Error) {
	terms := charges.PaymentTerms{
		PaymentMethodTypes: p.texts("payment_method_types"),
		SetupFutureUsage:   p.text("setup_future_usage"),
	}
	if automatic, given := p.get("automatic_payment_methods"); given {
		const enabled = "automatic_payment_methods[enabled]"
		if e := missingOf(automatic.record, enabled); e != nil {
			return terms, e
		}
		terms.AutomaticMethods = &charges.AutomaticMethods{
			Enabled:        automatic.record.boolean(enabled),
			AllowRedirects: automatic.record.text("automatic_payment_methods[allow_redirects]"),
		}
	}
	return terms, nil
}

// confirmPaymentIntent charges what an intent was made for, once for the request's key.
func (s *Server) confirmPaymentIntent(c echo.Context, r *request) error {
	return idempotent(s, c, r, func(p *parameters) (charges.ConfirmParams, *problem.Error) {
		return valid(charges.ConfirmParams{
			Intent: r.param, PaymentMethod: p.text("payment_method"),
			ReturnURL: p.text("return_url"), OffSession: p.flag("off_session"),
			ErrorOnRequiresAction: p.boolean("error_on_requires_action"),
			SetupFutureUsage:      p.text("setup_future_usage"),
			ReceiptEmail:          p.text("receipt_email"),
			WithCharge:            p.expands("latest_charge"),
		})
	}, s.cfg.Charges.ConfirmPaymentIntent)
}

// updatePaymentIntent changes an intent once for the request's key. Without one, the operation gets
// a key of its own: it has to end even if this process does not.
func (s *Server) updatePaymentIntent(c echo.Context, r *request) error {
	if r.key == "" {
		r.key = rand.Text()
	} else {
		c.Response().Header()["Idempotency-Key"] = []string{r.key}
	}
	return idempotent(s, c, r, func(
		p *parameters,
	) (charges.PaymentIntentUpdateParams, *problem.Error) {
		if e := amountAbove(p, "amount", "leave it out to keep it"); e != nil {
			return charges.PaymentIntentUpdateParams{}, e
		}
		lowerCurrency(p)
		return valid(charges.PaymentIntentUpdateParams{
			Intent: r.param, UpdateParams: updateParams("", p), Amount: p.integer("amount"),
			Currency: p.text("currency"), Customer: p.text("customer"),
			PaymentMethod:             p.text("payment_method"),
			StatementDescriptorSuffix: p.text("statement_descriptor_suffix"),
			PaymentMethodTypes:        p.texts("payment_method_types"),
			SetupFutureUsage:          p.text("setup_future_usage"),
			WithCharge:                p.expands("latest_charge"),
		})
	}, s.cfg.Charges.UpdatePaymentIntent)
}

// capturePaymentIntent takes what an intent holds, once for the request's key.
func (s *Server) capturePaymentIntent(c echo.Context, r *request) error {
	return idempotent(s, c, r, func(
		p *parameters,
	) (charges.PaymentIntentCaptureParams, *problem.Error) {
		if e := amountAbove(p, "amount_to_capture", "leave it out for all that is left"); e != nil {
			return charges.PaymentIntentCaptureParams{}, e
		}
		return valid(charges.PaymentIntentCaptureParams{
			Intent: r.param, Amount: p.integer("amount_to_capture"),
			WithCharge: p.expands("latest_charge"),
		})
	}, s.cfg.Charges.CapturePaymentIntent)
}

// cancelPaymentIntent ends an intent, once for the request's key.
func (s *Server) cancelPaymentIntent(c echo.Context, r *request) error {
	return idempotent(s, c, r, func(
		p *parameters,
	) (charges.PaymentIntentCancelParams, *problem.Error) {
		return valid(charges.PaymentIntentCancelParams{
			Intent: r.param, Reason: p.text("cancellation_reason"),
			WithCharge: p.expands("latest_charge"),
		})
	}, s.cfg.Charges.CancelPaymentIntent)
}

// getPaymentIntent shows an intent as it is now.
func (s *Server) getPaymentIntent(c echo.Context, r *request) error {
	return showOne(c, r, "payment intent", "latest_charge", s.cfg.Charges.GetPaymentIntent)
}

// listPaymentIntents shows a page of intents, newest first.
func (s *Server) listPaymentIntents(c echo.Context, r *request) error {
	if e := oneCursor(r.query); e != nil {
		return e
	}
	f := charges.PaymentIntentFilter{
		Limit: int(r.query.integer("limit")), StartingAfter: r.query.text("starting_after"),
		EndingBefore: r.query.text("ending_before"), Customer: r.query.text("customer"),
		WithCharges: r.query.expands("latest_charge"),
	}
	f.CreatedFrom, f.CreatedBefore = r.query.created()
	return list(c, r, "payment intent", f, f.EndingBefore, s.cfg.Charges.ListPaymentIntents,
		func(p charges.PaymentIntentPage) ([]charges.PaymentIntent, bool) {
			return p.PaymentIntents, p.HasMore
		})
}
