package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"paidonce/accounts"
	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/problem"
	"paidonce/provider"
)

const intentID = "pi_3MtwBwLkdIwHu7ix28a3tqPa"

// intent is answered to every request about payment intents.
func intent(id string) charges.PaymentIntent {
	secret := provider.Secret(id + "_secret_abc")
	return charges.PaymentIntent{
		ID: id, Object: "payment_intent", Amount: 2000, CaptureMethod: "automatic", ClientSecret: &secret, ConfirmationMethod: "automatic", Created: 1764403200, Currency: "usd",
		Metadata: map[string]string{}, PaymentMethodTypes: []string{"card"}, Status: "requires_payment_method",
	}
}

func (d domain) answersIntent(r idemkeys.Request, params any, code int) (idemkeys.Result, error) {
	d.edge.moved(r, params)
	res, err := d.edge.create(context.Background(), r, charges.Params{})
	if res.Answer.Code == http.StatusCreated {
		res.Answer.Code, res.Answer.Body = code, problem.Render(intent(intentID))
		if delete(res.Answer.Header, "Location"); code == http.StatusCreated {
			res.Answer.Header["Location"] = "/v1/payment_intents/" + intentID
		}
	}
	return res, err
}

func (d domain) CreatePaymentIntent(_ context.Context, r idemkeys.Request, p charges.PaymentIntentParams) (idemkeys.Result, error) {
	return d.answersIntent(r, p, http.StatusCreated)
}

func (d domain) ConfirmPaymentIntent(_ context.Context, r idemkeys.Request, p charges.ConfirmParams) (idemkeys.Result, error) {
	return d.answersIntent(r, p, http.StatusOK)
}

func (d domain) UpdatePaymentIntent(_ context.Context, r idemkeys.Request, p charges.PaymentIntentUpdateParams) (idemkeys.Result, error) {
	return d.answersIntent(r, p, http.StatusOK)
}

func (d domain) CapturePaymentIntent(_ context.Context, r idemkeys.Request, p charges.PaymentIntentCaptureParams) (idemkeys.Result, error) {
	return d.answersIntent(r, p, http.StatusOK)
}

func (d domain) CancelPaymentIntent(_ context.Context, r idemkeys.Request, p charges.PaymentIntentCancelParams) (idemkeys.Result, error) {
	return d.answersIntent(r, p, http.StatusOK)
}

func (d domain) GetPaymentIntent(_ context.Context, account, id string, _ bool) (charges.PaymentIntent, error) {
	if account != "acct_A" {
		return charges.PaymentIntent{}, charges.ErrNotFound
	}
	return intent(id), nil
}

func (d domain) ListPaymentIntents(_ context.Context, _ string, f charges.PaymentIntentFilter) (charges.PaymentIntentPage, error) {
	return d.edge.listIntents(f)
}

// medium is what a body is written as.
func medium(body string) string {
	if strings.HasPrefix(body, "{") {
		return mediaJSON
	}
	return mediaForm
}

func TestPaymentIntentParameters(t *testing.T) {
	e, yes, no := newEdge(t), true, false
	price := charges.Params{Amount: 2000, Currency: "usd", Capture: true}
	full := charges.PaymentIntentParams{
		Params: charges.Params{
			Amount: 2000, Currency: "usd", Customer: "cus_1", Source: "pm_1", Capture: true, Description: "d", Metadata: map[string]string{"a": "b"}, StatementDescriptorSuffix: "S",
			ReceiptEmail: "a@example.com", ReturnURL: "https://shop.example/", OffSession: &yes, Reference: "r", DuplicateOf: "ch_1",
		},
		PaymentTerms: charges.PaymentTerms{PaymentMethodTypes: []string{"card", "link"}, SetupFutureUsage: "off_session"}, Confirm: true, ErrorOnRequiresAction: true,
	}
	for body, want := range map[string]charges.PaymentIntentParams{
		`{"amount":2000,"currency":"USD"}`:                                                                                  {Params: price},
		`amount=2000&currency=usd&confirm=false`:                                                                            {Params: price},
		`amount=2000&currency=usd&capture_method=automatic_async`:                                                           {Params: price},
		`{"amount":2000,"currency":"usd","capture_method":"automatic"}`:                                                     {Params: price},
		`amount=2000&currency=usd&capture_method=manual`:                                                                    {Params: charges.Params{Amount: 2000, Currency: "usd"}},
		`amount=2000&currency=usd&confirm=true&off_session=false`:                                                           {Params: charges.Params{Amount: 2000, Currency: "usd", Capture: true, OffSession: &no}, Confirm: true},
		`amount=2000&currency=usd&automatic_payment_methods[enabled]=true`:                                                  {Params: price, PaymentTerms: automatic(true, "")},
		`amount=2000&currency=usd&automatic_payment_methods%5Benabled%5D=false`:                                             {Params: price, PaymentTerms: automatic(false, "")},
		`automatic_payment_methods[allow_redirects]=never&amount=2000&currency=usd&automatic_payment_methods[enabled]=true`: {Params: price, PaymentTerms: automatic(true, "never")},
		`{"amount":2000,"currency":"usd","automatic_payment_methods":{"allow_redirects":"always","enabled":true}}`:          {Params: price, PaymentTerms: automatic(true, "always")},
		`{"amount":2000,"currency":"usd","customer":"cus_1","payment_method":"pm_1","description":"d","metadata":{"a":"b"},"statement_descriptor_suffix":"S",` +
			`"receipt_email":"a@example.com","return_url":"https://shop.example/","off_session":true,"reference":"r","duplicate_of":"ch_1","confirm":true,` +
			`"payment_method_types":["card","link"],"setup_future_usage":"off_session","error_on_requires_action":true}`: full,
		`amount=2000&currency=usd&customer=cus_1&payment_method=pm_1&description=d&metadata[a]=b&statement_descriptor_suffix=S&receipt_email=a@example.com&` +
			`return_url=https://shop.example/&off_session=true&reference=r&duplicate_of=ch_1&confirm=true&payment_method_types[0]=card&payment_method_types[1]=link&` +
			`setup_future_usage=off_session&error_on_requires_action=true`: full,
	} {
		a := e.Post("/v1/payment_intents", "K", body, "Content-Type", medium(body))
		if a.Code != 201 || a.Header.Get("Location") != "/v1/payment_intents/"+intentID || !reflect.DeepEqual(e.last, want) {
			t.Errorf("%s: got %d %s, %+v", body, a.Code, a.Body, e.last)
		}
	}
}

func automatic(enabled bool, redirects string) charges.PaymentTerms {
	return charges.PaymentTerms{AutomaticMethods: &charges.AutomaticMethods{Enabled: enabled, AllowRedirects: redirects}}
}

func TestPaymentIntentParametersThatAreRefused(t *testing.T) {
	e := newEdge(t)
	const price, methods = "amount=2000&currency=usd&", "automatic_payment_methods"
	for _, tc := range []struct{ body, code, param string }{
		{``, "parameter_missing", "amount"}, {`amount=1`, "parameter_missing", "currency"}, {price + "confirmation_method=automatic", "parameter_unknown", "confirmation_method"},
		{price + "use_stripe_sdk=true", "parameter_unknown", "use_stripe_sdk"}, {price + "source=tok_visa", "parameter_unknown", "source"},
		{price + "capture=false", "parameter_unknown", "capture"}, {price + "capture_method=later", "parameter_invalid", "capture_method"},
		{price + "payment_method=4242424242424242", "parameter_invalid", "payment_method"}, {price + "return_url=https://shop.example/", "parameter_invalid", "return_url"},
		{price + "off_session=true", "parameter_invalid", "off_session"}, {price + "error_on_requires_action=true", "parameter_invalid", "error_on_requires_action"},
		{price + methods + "=true", "parameter_invalid", methods}, {price + methods + "[]=true", "parameter_unknown", methods + "[]"},
		{price + methods + "[enabled]=1", "parameter_invalid", methods + "[enabled]"}, {price + methods + "[enabled=true", "parameter_unknown", methods + "[enabled"},
		{price + methods + "[Enabled]=true", "parameter_unknown", methods + "[Enabled]"}, {price + methods + "[allow_redirects]=never", "parameter_missing", methods + "[enabled]"},
		{price + methods + "[enabled]=true&" + methods + "[enabled]=true", "parameter_duplicate", methods + "[enabled]"},
		{price + methods + "[enabled]=true&" + methods + "[allow_redirects]=", "parameter_invalid_empty", methods + "[allow_redirects]"},
		{price + methods + "[enabled]=true&" + methods + "[allow_redirects]=maybe", "parameter_invalid", methods + "[allow_redirects]"},
		{price + methods + "[enabled]=true&payment_method_types[]=card", "parameter_invalid", "payment_method_types"},
		{price + "payment_method_types=card", "parameter_invalid", "payment_method_types"}, {price + "setup_future_usage=always", "parameter_invalid", "setup_future_usage"},
		{`{"amount":1,"currency":"usd","` + methods + `":true}`, "parameter_invalid", methods}, {`{"amount":1,"currency":"usd","` + methods + `":null}`, "parameter_invalid", methods},
		{`{"amount":1,"currency":"usd","` + methods + `":{}}`, "parameter_missing", methods + "[enabled]"},
		{`{"amount":1,"currency":"usd","` + methods + `":{"enabled":"true"}}`, "parameter_invalid", methods + "[enabled]"},
		{`{"amount":1,"currency":"usd","` + methods + `":{"enabled":true,"enabled":true}}`, "parameter_duplicate", methods + "[enabled]"},
		{`{"amount":1,"currency":"usd","` + methods + `":{"enabled":true,"x":{}}}`, "parameter_unknown", methods + "[x]"},
		{`{"amount":1,"currency":"usd","` + methods + `":{"enabled":true},"` + methods + `":{}}`, "parameter_duplicate", methods},
		{`{"amount":1,"currency":"usd","` + methods + `[enabled]":true}`, "parameter_unknown", methods + "[enabled]"},
		{`{"amount":1,"currency":"usd","` + methods + `":{"enabled":true`, "body_malformed", ""},
	} {
		wants(t, e.Post("/v1/payment_intents", "K", tc.body, "Content-Type", medium(tc.body)), 400, tc.code, tc.param)
	}
	for _, tc := range []struct{ path, body, code, param string }{
		{"", "amount=0", "parameter_invalid_integer", "amount"}, {"", "confirm=true", "parameter_unknown", "confirm"}, {"", "currency=xxx", "invalid_currency", "currency"},
		{"", "customer=", "parameter_invalid_empty", "customer"}, {"/confirm", "payment_method=", "parameter_invalid_empty", "payment_method"},
		{"/confirm", "amount=1", "parameter_unknown", "amount"}, {"/confirm", "setup_future_usage=x", "parameter_invalid", "setup_future_usage"},
		{"/capture", "amount=1", "parameter_unknown", "amount"}, {"/capture", "amount_to_capture=0", "parameter_invalid_integer", "amount_to_capture"},
		{"/capture", "amount_to_capture=1000000000000", "amount_too_large", "amount_to_capture"}, {"/cancel", "cancellation_reason=other", "parameter_invalid", "cancellation_reason"},
		{"/cancel", "reason=duplicate", "parameter_unknown", "reason"},
	} {
		wants(t, e.Post("/v1/payment_intents/"+intentID+tc.path, "K", tc.body, "Content-Type", mediaForm), 400, tc.code, tc.param)
	}
	for _, action := range []string{"", "/" + intentID + "/confirm", "/" + intentID + "/capture", "/" + intentID + "/cancel"} {
		wants(t, e.Post("/v1/payment_intents"+action, "", ""), 400, "idempotency_key_missing", "")
	}
	if n := e.creations(); n != 0 {
		t.Errorf("%d requests went on", n)
	}
}

// JSON and forms are the same request, also where parameters are within parameters.
func TestPaymentIntentFormsAreTheSameRequest(t *testing.T) {
	e := newEdge(t)
	for _, body := range []string{
		`{"currency":"usd","amount":2000,"automatic_payment_methods":{"enabled":true,"allow_redirects":"never"}}`,
		`automatic_payment_methods[allow_redirects]=never&amount=2000&automatic_payment_methods[enabled]=true&currency=USD`,
		`{"currency":"usd","amount":2000,"automatic_payment_methods":{"allow_redirects":"never","enabled":false}}`,
		`{"currency":"usd","amount":2000,"automatic_payment_methods":{"enabled":true}}`,
		`{"currency":"usd","amount":2000}`,
	} {
		if a := e.Post("/v1/payment_intents", "K", body, "Content-Type", medium(body)); a.Code != 201 {
			t.Fatalf("%s: got %d %s", body, a.Code, a.Body)
		}
	}
	hash := func(i int) string {
		_, sum := e.created[i].Fingerprint.Current()
		return string(sum)
	}
	if hash(0) != hash(1) {
		t.Error("the same request differs")
	}
	seen := map[string]bool{}
	for i := range e.created[1:] {
		seen[hash(i+1)] = true
	}
	if len(seen) != 4 {
		t.Errorf("of 4 requests %d differ", len(seen))
	}
}

func TestPaymentIntentActions(t *testing.T) {
	e, yes, text, none := newEdge(t), true, "x", ""
	for _, tc := range []struct {
		path, body string
		want       any
	}{
		{"/confirm", ``, charges.ConfirmParams{Intent: intentID}},
		{"/confirm", `{"payment_method":"pm_1","return_url":"https://shop.example/","off_session":true,"error_on_requires_action":true,"setup_future_usage":"on_session","receipt_email":"a@example.com"}`,
			charges.ConfirmParams{
				Intent: intentID, PaymentMethod: "pm_1", ReturnURL: "https://shop.example/", OffSession: &yes, ErrorOnRequiresAction: true, SetupFutureUsage: "on_session", ReceiptEmail: "a@example.com",
			}},
		{"/capture", ``, charges.PaymentIntentCaptureParams{Intent: intentID}},
		{"/capture", `amount_to_capture=1200`, charges.PaymentIntentCaptureParams{Intent: intentID, Amount: 1200}},
		{"/cancel", ``, charges.PaymentIntentCancelParams{Intent: intentID}},
		{"/cancel", `{"cancellation_reason":"abandoned"}`, charges.PaymentIntentCancelParams{Intent: intentID, Reason: "abandoned"}},
		{"", `amount=2500&currency=EUR&customer=cus_1&payment_method=pm_1&statement_descriptor_suffix=S&payment_method_types[]=card&setup_future_usage=on_session`,
			charges.PaymentIntentUpdateParams{
				Intent: intentID, Amount: 2500, Currency: "eur", Customer: "cus_1", PaymentMethod: "pm_1", StatementDescriptorSuffix: "S", PaymentMethodTypes: []string{"card"}, SetupFutureUsage: "on_session",
			}},
		{"", `{"description":"","receipt_email":null,"metadata":null}`, charges.PaymentIntentUpdateParams{
			Intent: intentID, UpdateParams: charges.UpdateParams{Description: &none, ReceiptEmail: &none, Metadata: map[string]string{}, NoMetadata: true},
		}},
		{"", `description=x&metadata[a]=&metadata[b]=c`, charges.PaymentIntentUpdateParams{
			Intent: intentID, UpdateParams: charges.UpdateParams{Description: &text, Metadata: map[string]string{"a": "", "b": "c"}},
		}},
	} {
		a := e.Post("/v1/payment_intents/"+intentID+tc.path, "K", tc.body, "Content-Type", medium(tc.body))
		if a.Code != 200 || a.ID() != intentID || a.Header.Get("Idempotency-Key") != "K" || !reflect.DeepEqual(e.last, tc.want) {
			t.Errorf("%s %s: got %d %s, %+v", tc.path, tc.body, a.Code, a.Body, e.last)
		}
	}
}

// An update without a key is an operation all the same; its key is nobody's, and not told.
func TestAnUpdateOfAPaymentIntentHasAKeyOfItsOwn(t *testing.T) {
	e := newEdge(t)
	for range 2 {
		a := e.Post("/v1/payment_intents/"+intentID, "", `{"amount":2500}`)
		if a.Code != 200 || a.Header.Get("Idempotency-Key") != "" {
			t.Errorf("got %d %v", a.Code, a.Header)
		}
	}
	first, second := e.created[0].Key, e.created[1].Key
	if len(first) < 20 || first == second || strings.Contains(e.log.String(), first) {
		t.Errorf("the keys are %q and %q", first, second)
	}
	wants(t, e.Post("/v1/payment_intents/"+intentID, `"`, `{"amount":2500}`), 400, "idempotency_key_invalid", "")
	wants(t, e.Post("/v1/payment_intents/"+intentID+"?x=1", "K", `{"amount":2500}`), 400, "parameter_unknown", "x")
}

func TestPaymentIntentListFilters(t *testing.T) {
	e := newEdge(t)
	if a := e.Get("/v1/payment_intents/" + intentID); a.Code != 200 || a.ID() != intentID || !strings.Contains(string(a.Body), `"client_secret":"`+intentID+`_secret_abc"`) {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	wants(t, e.As("sk_B").Get("/v1/payment_intents/"+intentID), 404, "resource_missing", "id")
	wants(t, e.Get("/v1/payment_intents/"+intentID+"?client_secret=x"), 400, "parameter_unknown", "client_secret")
	var f charges.PaymentIntentFilter
	e.listIntents = func(got charges.PaymentIntentFilter) (charges.PaymentIntentPage, error) {
		f = got
		return charges.PaymentIntentPage{PaymentIntents: []charges.PaymentIntent{intent(intentID)}, HasMore: true}, nil
	}
	for query, want := range map[string]charges.PaymentIntentFilter{
		"": {Limit: 10}, "?customer=cus_1&limit=3": {Limit: 3, Customer: "cus_1"}, "?starting_after=pi_1": {Limit: 10, StartingAfter: "pi_1"}, "?ending_before=pi_1": {Limit: 10, EndingBefore: "pi_1"},
	} {
		a := e.Get("/v1/payment_intents" + query)
		if a.Code != 200 || f != want || !strings.HasPrefix(string(a.Body), `{"object":"list","url":"/v1/payment_intents","has_more":true,"data":[{"id":"`+intentID) {
			t.Errorf("%s: got %d, %+v, %s", query, a.Code, f, a.Body)
		}
	}
	if a := e.Get("/v1/payment_intents?created[gt]=4&created[lte]=8"); a.Code != 200 || !f.CreatedFrom.Equal(time.Unix(5, 0)) || !f.CreatedBefore.Equal(time.Unix(9, 0)) {
		t.Errorf("got %d, %+v", a.Code, f)
	}
	for _, tc := range []struct{ query, code, param string }{
		{"limit=0", "parameter_invalid_integer", "limit"}, {"status=succeeded", "parameter_unknown", "status"}, {"starting_after=a&ending_before=b", "parameter_invalid", "ending_before"},
		{"customer=" + strings.Repeat("c", 256), "parameter_invalid", "customer"},
	} {
		wants(t, e.Get("/v1/payment_intents?"+tc.query), 400, tc.code, tc.param)
	}
	for err, want := range map[error]string{charges.ErrNotFound: "resource_missing", errors.New("SQLSTATE 57P01"): "unavailable"} {
		e.listIntents = func(charges.PaymentIntentFilter) (charges.PaymentIntentPage, error) {
			return charges.PaymentIntentPage{}, err
		}
		if a := e.Get("/v1/payment_intents?ending_before=pi_x"); a.Error().Code != want {
			t.Errorf("%v: got %d %s", err, a.Code, a.Body)
		}
	}
}

// Errors of payment intents show the intent, as Stripe's do.
func TestErrorsShowThePaymentIntent(t *testing.T) {
	e := newEdge(t)
	refused := problem.PaymentIntentUnexpectedState.Of("id", "No.")
	refused.PaymentIntent = intent(intentID)
	e.answers(nil, refused)
	a := e.Post("/v1/payment_intents/"+intentID+"/cancel", "K", "")
	wants(t, a, 400, "payment_intent_unexpected_state", "id")
	var got struct {
		Error struct {
			PaymentIntent json.RawMessage `json:"payment_intent"`
		}
	}
	a.JSON(&got)
	if want := strings.TrimSpace(string(problem.Render(intent(intentID)))); string(got.Error.PaymentIntent) != want {
		t.Errorf("got %s, want %s", got.Error.PaymentIntent, want)
	}
	e.answers(nil, problem.ConfirmPending.Of("id", "Wait."))
	if a := e.Post("/v1/payment_intents/"+intentID+"/confirm", "K", ""); a.Code != 409 || a.Header.Get("Retry-After") != "2" {
		t.Errorf("got %d %v", a.Code, a.Header)
	}
	if log := e.log.String(); strings.Contains(log, "_secret_") {
		t.Errorf("the log has a client secret: %s", log)
	}
}

// The account's rule of where references are in metadata holds for payment intents as well.
func TestPaymentIntentReferenceFromMetadata(t *testing.T) {
	e := newEdge(t)
	e.keys[secret] = accounts.Identity{AccountID: "acct_A", APIKeyID: "key_A", ReferenceFrom: "order_id"}
	e.Post("/v1/payment_intents", "K", `{"amount":1,"currency":"usd","metadata":{"order_id":"6735"}}`)
	p, _ := e.last.(charges.PaymentIntentParams)
	if p.Reference != "6735" || p.ReferenceFrom != "order_id" {
		t.Errorf("got %+v", p)
	}
}
