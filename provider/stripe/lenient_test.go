package stripe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/provider"
	"paidonce/provider/stripe"
)

// What an answer lacks is as it was asked for.
func TestAnswersThatLackThings(t *testing.T) {
	ctx := context.Background()
	authorise := ordinary
	authorise.Capture, authorise.Livemode, authorise.Currency = false, true, "USD"
	want := provider.Charge{
		ID: "ch_1", Status: provider.Succeeded, Amount: 2000, AmountCaptured: 2000, Currency: "usd", Captured: true, Tags: ordinary.Tags,
	}
	held := want
	held.Captured, held.AmountCaptured, held.Livemode = false, 0, true
	failed := want
	failed.Status, failed.Captured, failed.AmountCaptured = provider.Failed, false, 0
	in := func(c provider.Charge, at int64) provider.Charge { c.Created = time.Unix(at, 0).UTC(); return c }
	odd := want
	odd.IntentID, odd.Outcome = "pi_1", &provider.Assessment{RiskLevel: "normal"}
	for name, c := range map[string]struct {
		request provider.ChargeRequest
		body    string
		want    provider.Charge
	}{
		"id and status":            {ordinary, `{"id":"ch_1","status":"succeeded"}`, want},
		"to authorise":             {authorise, `{"id":"ch_1","status":"succeeded"}`, held},
		"failed":                   {ordinary, `{"id":"ch_1","status":"failed"}`, failed},
		"everything null":          {ordinary, `{"id":"ch_1","status":"succeeded","object":null,"amount":null,"currency":null,"livemode":null,"captured":null,"amount_captured":null,"metadata":null,"created":null}`, want},
		"no captured amount":       {ordinary, goodCharge(`"amount_captured":2000,`, "", `"created":1700000000,`, ""), want},
		"one tag":                  {ordinary, goodCharge(`"paidonce_operation":"op_1",`, ""), in(want, 1700000000)},
		"metadata is a list":       {ordinary, `{"id":"ch_1","status":"succeeded","metadata":[]}`, want},
		"currency in capitals":     {ordinary, goodCharge("usd", "USD"), in(want, 1700000000)},
		"amounts with a point":     {ordinary, goodCharge(":2000", ":2000.0"), in(want, 1700000000)},
		"created with a point":     {ordinary, goodCharge("1700000000", "1700000000.75"), in(want, 1700000000)},
		"created in a string":      {ordinary, goodCharge("1700000000", `"1700000000"`), in(want, 1700000000)},
		"created in words":         {ordinary, goodCharge("1700000000", `"yesterday"`), want},
		"created is an object":     {ordinary, goodCharge("1700000000", `{"at":1}`), want},
		"created in the far away":  {ordinary, goodCharge("1700000000", `1e300`), want},
		"created is not a number":  {ordinary, goodCharge("1700000000", `"NaN"`), want},
		"other types elsewhere":    {ordinary, `{"id":"ch_1","status":"succeeded","failure_code":7,"failure_message":{},"disputed":"no","outcome":"fine","payment_intent":["x"]}`, want},
		"expanded intent, outcome": {ordinary, `{"id":"ch_1","status":"succeeded","payment_intent":{"id":"pi_1","x":[1]},"outcome":{"risk_level":"normal","reason":7}}`, odd},
	} {
		out, err := answering(t, 200, nil, c.body).Charge(ctx, &c.request)
		if err != nil || out.Charge == nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := *out.Charge
		if got.Outcome != nil && c.want.Outcome != nil && *got.Outcome == *c.want.Outcome {
			got.Outcome = c.want.Outcome
		}
		if got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, c.want)
		}
	}
}

func TestIntentAnswers(t *testing.T) {
	ctx, r := context.Background(), ordinary
	r.Livemode, r.Currency = true, "USD"
	for types, want := range map[string][]string{
		"": nil, `,"payment_method_types":null`: nil, `,"payment_method_types":"card"`: nil, `,"payment_method_types":{"card":1}`: nil,
		`,"payment_method_types":["card",7,{"a":["b"]},null,"link"]`: {"card", "link"},
	} {
		created, err := answering(t, 200, nil, `{"id":"pi_1","status":"requires_confirmation"`+types+`}`).CreateIntent(ctx, &r, "")
		want := provider.Intent{
			ID: "pi_1", Status: provider.IntentRequiresConfirmation, Amount: 2000, Currency: "usd", Livemode: true, Tags: r.Tags, MethodTypes: want,
		}
		if err != nil || !reflect.DeepEqual(*created.Intent, want) {
			t.Errorf("%s: got %+v, %v, want %+v", types, created.Intent, err, want)
		}
	}
	const charge = `{"id":"ch_1","status":"succeeded"`
	for name, c := range map[string]struct {
		body     string
		captured bool
		live     bool
	}{
		"all of the intent's":  {`"status":"succeeded","amount":2000,"currency":"USD","livemode":true,"latest_charge":` + charge + `}`, true, true},
		"all of the charge's":  {`"status":"succeeded","latest_charge":` + charge + `,"amount":2000,"currency":"usd","livemode":true}`, true, true},
		"nobody says the mode": {`"status":"succeeded","amount":2000,"currency":"usd","latest_charge":` + charge + `}`, true, false},
		"authorised":           {`"status":"requires_capture","amount":2000,"currency":"usd","latest_charge":` + charge + `}`, false, false},
		"authorised, it says":  {`"status":"requires_capture","amount":2000,"currency":"usd","latest_charge":` + charge + `,"amount_captured":0}`, false, false},
	} {
		p := answering(t, 200, nil, `{"id":"pi_1",`+c.body+`}`)
		out, err := p.ConfirmIntent(ctx, ordinaryConfirm)
		if err != nil || out.Intent == nil || out.Intent.Charge == nil {
			t.Errorf("%s: %+v, %v", name, out, err)
			continue
		}
		i, got := out.Intent, out.Intent.Charge
		if i.Amount != 2000 || i.Currency != "usd" || i.Livemode != c.live || i.Tags != r.Tags || i.ChargeID != "ch_1" {
			t.Errorf("%s: %+v", name, i)
		}
		if got.Amount != 2000 || got.Currency != "usd" || got.Livemode != c.live || got.Tags != r.Tags || got.IntentID != "pi_1" || got.Captured != c.captured {
			t.Errorf("%s: %+v", name, got)
		}
		read, err := p.GetIntent(ctx, "pi_1")
		if err != nil || read.Amount != 2000 || read.Charge.Captured != c.captured || read.Livemode != c.live {
			t.Errorf("%s, read: %+v, %v", name, read, err)
		}
	}
	half := `{"id":"pi_1","status":"processing","amount":2000,"currency":"usd","latest_charge":` + charge + `}}`
	if got := intentVerdict(answering(t, 200, nil, half).ConfirmIntent(ctx, ordinaryConfirm)); got != "unknown" {
		t.Errorf("a charge that nobody says is captured: %s", got)
	}
}

func TestDisputeModeInWords(t *testing.T) {
	body := `{"id":"dp_1","charge":{"id":"ch_1"},"amount":5,"currency":"USD","status":"lost","livemode":%s}`
	if d, err := answering(t, 200, nil, fmt.Sprintf(body, "null")).GetDispute(context.Background(), "dp_1"); err != nil || d.ChargeID != "ch_1" || d.Currency != "usd" {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := answering(t, 200, nil, fmt.Sprintf(body, `"no"`)).GetDispute(context.Background(), "dp_1"); err == nil {
		t.Errorf("%+v", d)
	}
}

func TestCaptureAnswers(t *testing.T) {
	r := provider.CaptureRequest{IdempotencyKey: "po_2", Tags: ordinary.Tags, ChargeID: "ch_1", Amount: 1500}
	for body, want := range map[string]string{
		`{"id":"ch_1","status":"succeeded"}`:                                     "charge",
		`{"id":"ch_1","status":"succeeded","amount":2000,"amount_refunded":500}`: "charge",
		goodCharge(`"amount_captured":2000`, `"amount_captured":1500.0`):         "charge",
		goodCharge(): "conflict",
		`{"id":"ch_1","status":"succeeded","captured":false}`:         "conflict",
		`{"id":"ch_2","status":"succeeded"}`:                          "conflict",
		`{"id":"ch_1"}`:                                               "unknown",
		`{"status":"succeeded"}`:                                      "unknown",
		`{"id":"ch_1","status":"succeeded","amount_captured":"1500"}`: "unknown",
		`{"id":"ch_1","status":"succeeded","object":"refund"}`:        "unknown",
	} {
		out, err := answering(t, 200, nil, body).Capture(context.Background(), r)
		if got := verdict(out, err); got != want {
			t.Errorf("%s: got %s (%v), want %s", body, got, err, want)
		}
		if c := out.Charge; c != nil && (!c.Captured || c.AmountCaptured != 1500 || c.AmountRefunded != 0) {
			t.Errorf("%s: %+v", body, c)
		}
	}
}

func TestRefundAnswers(t *testing.T) {
	r := provider.RefundRequest{IdempotencyKey: "po_3", Tags: ordinary.Tags, ChargeID: "ch_1", Amount: 5}
	for rest, want := range map[string]string{
		`"status":"pending"`: "refund",
		`"status":"succeeded","amount":5.0,"charge":{"id":"ch_1"}`:      "refund",
		`"status":"succeeded","metadata":{"paidonce_operation":"op_1"}`: "refund",
		`"amount":5`:                                                        "unknown",
		`"status":"odd"`:                                                    "unknown",
		`"status":"succeeded","object":"charge"`:                            "unknown",
		`"status":"succeeded","amount":6`:                                   "conflict",
		`"status":"succeeded","charge":"ch_2"`:                              "conflict",
		`"status":"succeeded","charge":{"id":"ch_2"}`:                       "conflict",
		`"status":"succeeded","metadata":{"paidonce_operation":"op_2"}`:     "conflict",
		`"status":"succeeded","metadata":{"paidonce_installation":"other"}`: "conflict",
	} {
		out, err := answering(t, 200, nil, `{"id":"re_1",`+rest+`}`).Refund(context.Background(), r)
		got := verdict(provider.ChargeOutcome{}, err)
		if re := out.Refund; re != nil {
			got = "refund"
			if re.Amount != 5 || re.ChargeID != "ch_1" || re.Tags != r.Tags {
				t.Errorf("%s: %+v", rest, re)
			}
		}
		if got != want {
			t.Errorf("%s: got %s (%v), want %s", rest, got, err, want)
		}
	}
}

// A customer's source may be there in full.
func TestExpandedCustomer(t *testing.T) {
	base, seen := recording(t, map[string]string{"/v1/customers/cus_1": `{"id":"cus_1","default_source":{"id":"card_1","object":"card"},"invoice_settings":[]}`})
	r := ordinary
	r.Source, r.Customer = "", "cus_1"
	_, _ = connect(t, base).CreateIntent(context.Background(), &r, "")
	if last := (*seen)[len(*seen)-1]; last.method != http.MethodPost || last.form.Get("payment_method") != "card_1" {
		t.Errorf("%+v", last)
	}
}

func listOf(items ...string) string {
	return `{"has_more":false,"data":[` + strings.Join(items, ",") + `]}`
}

// In a list only what carries our tags has to be whole; everything needs an id. A hit's amount and
// currency are not made up.
func TestHits(t *testing.T) {
	foreign := goodCharge("ch_1", "ch_2", "op_1", "op_2")
	for name, c := range map[string]struct {
		items []string
		hits  int // -1: inconclusive
	}{
		"hit":                         {[]string{foreign, goodCharge()}, 1},
		"odd foreign ones":            {[]string{`{"id":"ch_3"}`, `{"id":"ch_4","object":7,"amount":"x","metadata":7,"created":[],"status":{}}`, foreign, goodCharge()}, 1},
		"odd, of another operation":   {[]string{goodCharge("op_1", "op_2", "succeeded", "simmering", "2000", `"x"`)}, 0},
		"odd, other installation":     {[]string{goodCharge("in_1", "in_2", "succeeded", "simmering")}, 0},
		"foreign without an id":       {[]string{goodCharge(), `{"object":"charge"}`}, -1},
		"foreign with a number as id": {[]string{goodCharge(), `{"id":7}`}, -1},
		"without an amount":           {[]string{goodCharge(`"amount":2000,`, "")}, -1},
		"with an amount in words":     {[]string{goodCharge(`"amount":2000`, `"amount":"2000"`)}, -1},
		"without a currency":          {[]string{goodCharge(`"currency":"usd",`, "")}, -1},
		"with a new status":           {[]string{goodCharge("succeeded", "simmering")}, -1},
		"of another object":           {[]string{goodCharge(`"charge"`, `"refund"`)}, -1},
		"without an object":           {[]string{goodCharge(`"object":"charge",`, "")}, 1},
		"livemode in words":           {[]string{goodCharge(`"livemode":false`, `"livemode":"no"`)}, -1},
		"captured by its amount":      {[]string{goodCharge(`"captured":true,`, "")}, 1},
		"captured by itself":          {[]string{goodCharge(`"amount_captured":2000,`, "")}, 1},
		"captured or not":             {[]string{goodCharge(`"captured":true,`, "", `"amount_captured":2000,`, "")}, -1},
		"one whole, one not":          {[]string{goodCharge(), goodCharge("succeeded", "simmering", "ch_1", "ch_5")}, -1},
	} {
		hits, err := answering(t, 200, nil, listOf(c.items...)).FindCharge(context.Background(), provider.Lookup{Tags: ordinary.Tags})
		if (err != nil) != (c.hits < 0) || len(hits) != max(c.hits, 0) {
			t.Errorf("%s: %+v, %v", name, hits, err)
		}
		if len(hits) == 1 && (!hits[0].Captured || hits[0].AmountCaptured != 2000) {
			t.Errorf("%s: %+v", name, hits[0])
		}
	}
}

// Where nothing says it, an object is of the mode of our key.
func TestModeOfTheKey(t *testing.T) {
	for key, live := range map[string]bool{"sk_live_1": true, "rk_live_1": true, "sk_test_1": false, "sk_test_live_1": false, "sk_1": false} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := goodCharge(`"livemode":false,`, "")
			if r.URL.Path == "/v1/charges" {
				c = listOf(c)
			}
			_, _ = w.Write([]byte(c))
		}))
		p, err := stripe.New(stripe.Config{APIKey: key, BaseURL: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		hits, err := p.FindCharge(context.Background(), provider.Lookup{Tags: ordinary.Tags})
		if err != nil || len(hits) != 1 || hits[0].Livemode != live {
			t.Errorf("%s: got %+v, %v, want 1", key, hits, err)
		}
		if c, err := p.GetCharge(context.Background(), "ch_1"); err != nil || c.Livemode != live {
			t.Errorf("%s: %+v, %v", key, c, err)
		}
		p.Close()
		s.Close()
	}
}

func TestRefundHits(t *testing.T) {
	refund := func(changes ...string) string {
		return strings.NewReplacer(changes...).Replace(`{"id":"re_1","charge":"ch_1","amount":5,"currency":"usd","status":"succeeded",` +
			`"metadata":{"paidonce_operation":"op_1","paidonce_installation":"in_1"}}`)
	}
	for name, c := range map[string]struct {
		items []string
		hits  int
	}{
		"hit":                 {[]string{refund()}, 1},
		"odd foreign one":     {[]string{`{"id":"re_2","status":7}`, refund()}, 1},
		"without a charge":    {[]string{refund(`"charge":"ch_1",`, "")}, 1},
		"expanded charge":     {[]string{refund(`"ch_1"`, `{"id":"ch_1"}`)}, 1},
		"of another charge":   {[]string{refund("op_1", "op_2", "ch_1", "ch_2")}, -1},
		"without an amount":   {[]string{refund(`"amount":5,`, "")}, -1},
		"without a currency":  {[]string{refund(`"currency":"usd",`, "")}, -1},
		"without a status":    {[]string{refund(`"status"`, `"state"`)}, -1},
		"foreign, without id": {[]string{refund(), `{"status":"succeeded"}`}, -1},
	} {
		hits, err := answering(t, 200, nil, listOf(c.items...)).FindRefund(context.Background(), provider.Lookup{Tags: ordinary.Tags, ChargeID: "ch_1"})
		if (err != nil) != (c.hits < 0) || len(hits) != max(c.hits, 0) || len(hits) == 1 && hits[0].ChargeID != "ch_1" {
			t.Errorf("%s: %+v, %v", name, hits, err)
		}
	}
}

func TestListedCharges(t *testing.T) {
	for name, c := range map[string]struct {
		items  []string
		listed int
	}{
		"all":                {[]string{goodCharge(), goodCharge("ch_1", "ch_2")}, 2},
		"odd and untagged":   {[]string{`{"id":"ch_3","amount":"x"}`, goodCharge()}, 1},
		"odd and tagged":     {[]string{goodCharge("succeeded", "simmering")}, -1},
		"untagged, no id":    {[]string{`{"amount":5}`}, -1},
		"tagged, no amount":  {[]string{goodCharge(`"amount":2000,`, "")}, -1},
		"untagged but whole": {[]string{goodCharge(`"paidonce_operation":"op_1",`, "")}, 1},
	} {
		n := 0
		err := answering(t, 200, nil, listOf(c.items...)).ListCharges(context.Background(), time.Now(), time.Now(), func(provider.Charge) error { n++; return nil })
		if (err != nil) != (c.listed < 0) || err == nil && n != c.listed {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

// A hit that can't be read leaves its own look-up open, not those that share its walk.
func TestHalfHitIsItsOwn(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-release
		_, _ = w.Write([]byte(listOf(goodCharge("succeeded", "simmering"), goodCharge("ch_1", "ch_2", "op_1", "op_2"))))
	}))
	defer s.Close()
	p, err := stripe.New(stripe.Config{APIKey: testKey, BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var group sync.WaitGroup
	for n := range 40 {
		group.Go(func() {
			tags := provider.Tags{Operation: fmt.Sprint("op_", 1+n%2), Installation: "in_1"}
			hits, err := p.FindCharge(context.Background(), provider.Lookup{Tags: tags})
			if odd := n%2 == 0; (err != nil) != odd || len(hits) != n%2 {
				t.Errorf("%s: %+v, %v", tags.Operation, hits, err)
			}
		})
	}
	time.Sleep(50 * time.Millisecond) // until they wait for a shared walk
	close(release)
	group.Wait()
}
