package stripesim

import (
	"net/http"
	"slices"
)

// Where an intent can stand here. Only a bank debit leaves one processing.
const (
	needsMethod  = "requires_payment_method"
	needsConfirm = "requires_confirmation"
	needsAction  = "requires_action"
	needsCapture = "requires_capture"
	processing   = "processing"
	succeeded    = "succeeded"
	canceled     = "canceled"
)

const (
	intentParams = "amount application_fee_amount capture_method confirm confirmation_method currency customer description " +
		"error_on_requires_action off_session on_behalf_of payment_method receipt_email return_url setup_future_usage " +
		"statement_descriptor statement_descriptor_suffix transfer_group use_stripe_sdk"
	intentNested = "automatic_payment_methods expand metadata payment_method_data payment_method_options payment_method_types " +
		"radar_options shipping transfer_data"
	confirmParams = "client_secret error_on_requires_action off_session payment_method receipt_email return_url setup_future_usage use_stripe_sdk"
	confirmNested = "expand payment_method_data payment_method_options payment_method_types radar_options shipping"
)

// confirmation is what a call to confirm an intent says beside the intent.
type confirmation struct {
	returnURL     string
	offSession    bool
	errorOnAction bool // what needs the payer is declined
	future        string
	key           string
	bank          string // the origin of the page that the payer is sent to
}

func (s *Server) createIntent(c *call) (work, *apiError) {
	p := c.params
	if bad := p.allow(intentParams, intentNested); bad != nil {
		return nil, bad
	}
	amount, currency, bad := p.price()
	if bad != nil {
		return nil, bad
	}
	metadata, bad := p.metadata()
	if bad != nil {
		return nil, bad
	}
	shipping, bad := p.intentTexts()
	if bad != nil {
		return nil, bad
	}
	confirm, bad := p.boolean("confirm", false)
	if bad != nil {
		return nil, bad
	}
	for _, name := range []string{"return_url", "off_session", "error_on_requires_action"} {
		if _, given := p.lookup(name); given && !confirm {
			return nil, invalid("", name, "You can only specify %s when you create a PaymentIntent with confirm=true.", name)
		}
	}
	pays, bad := p.method()
	if bad != nil {
		return nil, bad
	}
	how, bad := p.confirmation(c)
	if bad != nil {
		return nil, bad
	}
	in := &intent{
		Live: c.live, Amount: amount, Currency: currency, Customer: p.get("customer"), Description: p.get("description"), Key: c.key,
		ReceiptEmail: p.get("receipt_email"), Suffix: p.get("statement_descriptor_suffix"),
		Metadata: metadata, Shipping: shipping, Status: needsMethod, Bank: c.origin, Future: how.future,
	}
	if in.Redirects, in.Types, bad = p.waysToPay(); bad != nil {
		return nil, bad
	}
	if in.Manual, bad = p.manual(); bad != nil {
		return nil, bad
	}
	expand := p.expands("latest_charge")
	return func(st *state) (*record, *apiError) {
		if in.Customer != "" && st.customer(in.Customer, in.Live) == nil {
			return nil, noSuchParam("customer", in.Customer, "customer")
		}
		if bad := in.attach(st, pays); bad != nil {
			return nil, bad
		}
		if confirm && in.Source == "" {
			if bad := in.attachDefault(st); bad != nil {
				return nil, bad
			}
		}
		if confirm {
			if bad := in.refuses(how); bad != nil {
				return nil, bad
			}
		}
		in.ID, in.Created = newID("pi_3"), s.now().Unix()
		rec := &record{Op: opIntent, Intent: in, Expand: expand}
		rec.event("payment_intent.created")
		if !confirm {
			return rec, nil
		}
		return rec, s.confirm(rec, how)
	}, nil
}

// unexpected is the error of a call that doesn't fit where the intent stands. It shows the intent.
func (in *intent) unexpected(format string, args ...any) *apiError {
	return invalid("payment_intent_unexpected_state", "", format, args...).about(in)
}

// about shows the intent with the error, once there is one.
func (a *apiError) about(in *intent) *apiError {
	if in.ID != "" {
		a.Intent = in
	}
	return a
}

// onIntent makes the work that changes a copy of an intent.
func (s *Server) onIntent(c *call, id, op string, change func(*state, *record) *apiError) work {
	expand := c.params.expands("latest_charge")
	return func(st *state) (*record, *apiError) {
		e := st.intents[id]
		if e == nil || e.cur.Live != c.live {
			return nil, noSuch("payment_intent", id, "intent")
		}
		if bad := e.cur.open(c); bad != nil {
			return nil, bad
		}
		in := *e.cur
		rec := &record{Op: op, Intent: &in, Expand: expand, Public: c.public}
		bad := change(st, rec)
		if bad != nil {
			bad.Public = c.public
		}
		if bad != nil && len(rec.Events) == 0 {
			return nil, bad // nothing happened
		}
		return rec, bad
	}
}

func (s *Server) confirmIntent(c *call, id string) (work, *apiError) {
	p := c.params
	allowed := confirmParams
	if c.public {
		allowed = browserParams
	}
	if bad := p.allow(allowed, confirmNested); bad != nil {
		return nil, bad
	}
	if bad := checkTexts(p); bad != nil {
		return nil, bad
	}
	pays, bad := p.method()
	if bad != nil {
		return nil, bad
	}
	how, bad := p.confirmation(c)
	if bad != nil {
		return nil, bad
	}
	email := p.get("receipt_email")
	return s.onIntent(c, id, opConfirm, func(st *state, rec *record) *apiError {
		in := rec.Intent
		switch in.Status {
		case succeeded:
			return in.unexpected("You cannot confirm this PaymentIntent because it has already succeeded after being previously confirmed.")
		case needsCapture, processing, canceled:
			return in.unexpected("You cannot confirm this PaymentIntent because it has a status of %s.", in.Status)
		}
		if bad := in.attach(st, pays); bad != nil {
			return bad
		}
		if in.Source == "" {
			return in.unexpected("You cannot confirm this PaymentIntent because it's missing a payment method.")
		}
		if how.future != "" {
			in.Future = how.future
		}
		if bad := in.refuses(how); bad != nil {
			return bad
		}
		if email != "" {
			in.ReceiptEmail = email
		}
		return s.confirm(rec, how)
	}), nil
}

// confirm takes an intent with a means of payment as far as it goes without the payer.
func (s *Server) confirm(rec *record, how confirmation) *apiError {
	in := rec.Intent
	in.Failure, in.Action, in.ReturnURL = nil, "", how.returnURL
	if how.bank != "" {
		in.Bank = how.bank
	}
	card := cardOf(in.Source)
	switch {
	case !card.authenticate:
		return s.pay(rec, card.decline, how.key)
	case how.offSession: // nobody is there to do it
		return s.pay(rec, card.decline, how.key)
	case how.errorOnAction: // without having charged
		d := declines[notHandled]
		bad := &apiError{Status: http.StatusPaymentRequired, Type: typeCard, Code: d.code, DeclineCode: notHandled, Message: d.message}
		failure := *bad
		in.fail(&failure)
		rec.event("payment_intent.payment_failed")
		bad.Intent = in
		return bad
	}
	in.Status, in.Action = needsAction, "use_stripe_sdk"
	if in.ReturnURL != "" {
		in.Action = "redirect_to_url"
	}
	rec.event("payment_intent.requires_action")
	return nil
}

// pay charges the intent's card.
func (s *Server) pay(rec *record, declineCode, key string) *apiError {
	in := rec.Intent
	ch := &charge{
		ID: newID("ch_3"), Created: s.now().Unix(), Live: in.Live, Amount: in.Amount, Currency: in.Currency, Customer: in.Customer,
		Source: in.Source, Description: in.Description, ReceiptEmail: in.ReceiptEmail, Suffix: in.Suffix,
		Metadata: in.Metadata, Shipping: in.Shipping, Intent: in.ID, Method: in.Method, Key: key, Status: "failed", Decline: declineCode,
	}
	in.Charge, in.Action, rec.Charge = ch.ID, "", ch
	if declineCode != "" {
		d := declines[declineCode]
		bad := &apiError{
			Status: http.StatusPaymentRequired, Type: typeCard, Code: d.code, DeclineCode: declineCode, Message: d.message, Param: d.param,
			Charge: ch.ID,
		}
		failure := *bad
		in.fail(&failure)
		rec.event("charge.failed")
		rec.event("payment_intent.payment_failed")
		bad.Intent = in
		return bad
	}
	if cardOf(in.Source).debit {
		rec.debit(ch)
		in.Status = processing
		rec.event("payment_intent.processing")
		return nil
	}
	ch.Status, in.Status = "succeeded", needsCapture
	rec.event("charge.succeeded")
	if in.Manual {
		rec.event("payment_intent.amount_capturable_updated")
		return nil
	}
	ch.Captured, ch.AmountCaptured = true, ch.Amount
	in.Status, in.Received = succeeded, ch.Amount
	rec.event("payment_intent.succeeded")
	if cardOf(in.Source).dispute {
		addDispute(rec, ch, DisputeTerms{})
	}
	return nil
}

// fail takes the means of payment off, as Stripe does: the next attempt needs another.
func (in *intent) fail(why *apiError) {
	in.Status, in.Failure, in.Action, in.Source, in.Method = needsMethod, why, "", "", ""
}

func (s *Server) captureIntent(c *call, id string) (work, *apiError) {
	p := c.params
	if bad := p.allow("amount_to_capture application_fee_amount final_capture statement_descriptor statement_descriptor_suffix", "expand transfer_data"); bad != nil {
		return nil, bad
	}
	amount, given, bad := p.positive("amount_to_capture")
	if bad != nil {
		return nil, bad
	}
	if bad := checkTexts(p); bad != nil {
		return nil, bad
	}
	return s.onIntent(c, id, opCapture, func(st *state, rec *record) *apiError {
		in := rec.Intent
		if in.Status != needsCapture {
			return in.unexpected("This PaymentIntent could not be captured because it has a status of %s. Only one with the status requires_capture may be.", in.Status)
		}
		if !given {
			amount = in.Amount
		}
		if amount > in.Amount {
			return invalid("amount_too_large", "amount_to_capture", "The amount to capture (%s) is greater than the amount that can be captured (%s).",
				money(amount, in.Currency), money(in.Amount, in.Currency))
		}
		ch := *st.charges[in.Charge].cur
		in.Status, in.Received = succeeded, amount
		s.capture(rec, &ch, amount)
		rec.event("payment_intent.succeeded")
		return nil
	}), nil
}

func (s *Server) cancelIntent(c *call, id string) (work, *apiError) {
	p := c.params
	if bad := p.allow("cancellation_reason", "expand"); bad != nil {
		return nil, bad
	}
	reason := p.get("cancellation_reason")
	if reason != "" && !slices.Contains([]string{"duplicate", "fraudulent", "requested_by_customer", "abandoned"}, reason) {
		return nil, invalid("", "cancellation_reason", "Invalid cancellation_reason: must be one of duplicate, fraudulent, requested_by_customer, or abandoned")
	}
	return s.onIntent(c, id, opCancel, func(st *state, rec *record) *apiError {
		in := rec.Intent
		// Stripe lets money that is under way be called back in rare cases only.
		if in.Status == succeeded || in.Status == canceled || in.Status == processing {
			return in.unexpected("You cannot cancel this PaymentIntent because it has a status of %s.", in.Status)
		}
		if in.Status == needsCapture { // what was held is let go, and counts as refunded
			ch := *st.charges[in.Charge].cur
			rec.Charge = &ch
			s.letGo(rec, &ch, ch.Amount)
			rec.event("charge.refunded")
		}
		in.Status, in.Action, in.CanceledAt, in.Reason = canceled, "", s.now().Unix(), reason
		rec.event("payment_intent.canceled")
		return nil
	}), nil
}

// Authenticate ends what an intent waits for: the payer did what was asked, or didn't.
func (s *Server) Authenticate(id string, succeed bool) error {
	return s.change(func(st *state) *record {
		e := st.intents[id]
		if e == nil || e.cur.Status != needsAction {
			return nil
		}
		in := *e.cur
		rec := &record{Op: opChange, Intent: &in}
		if succeed {
			// a decline is an event; there is nobody to answer
			_ = s.pay(rec, cardOf(in.Source).afterwards, "")
			return rec
		}
		in.fail(&apiError{
			Type: typeInvalid, Code: "payment_intent_authentication_failure",
			Message: "The provided payment method has failed authentication. Another one may be tried on this PaymentIntent.",
		})
		rec.event("payment_intent.payment_failed")
		return rec
	})
}
