package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"paidonce/metrics"
	"paidonce/provider"
)

// told is what a provider answers, whatever is called.
type told struct {
	provider.Provider
	err    error
	status provider.Status
	intent provider.IntentStatus
	no     *provider.Refusal
	hits   int
}

func (p told) charge() (o provider.ChargeOutcome, err error) {
	if o.Refusal = p.no; p.no == nil {
		o.Charge = &provider.Charge{Status: p.status}
	}
	return o, p.err
}

func (p told) intents() (o provider.IntentOutcome, err error) {
	if o.Refusal = p.no; p.no == nil {
		o.Intent = &provider.Intent{Status: p.intent}
	}
	return o, p.err
}

func read[T any](p told) (*T, error) {
	if p.hits == 0 {
		return nil, p.err
	}
	return new(T), p.err
}

func (p told) Charge(context.Context, *provider.ChargeRequest) (provider.ChargeOutcome, error) {
	return p.charge()
}

func (p told) Capture(context.Context, provider.CaptureRequest) (provider.ChargeOutcome, error) {
	return p.charge()
}

func (p told) Refund(context.Context, provider.RefundRequest) (o provider.RefundOutcome, err error) {
	if o.Refusal = p.no; p.no == nil {
		o.Refund = &provider.Refund{Status: p.status}
	}
	return o, p.err
}

func (p told) CreateIntent(context.Context, *provider.ChargeRequest, string) (provider.IntentOutcome, error) {
	return p.intents()
}

func (p told) UpdateIntent(context.Context, provider.UpdateIntentRequest) (provider.IntentOutcome, error) {
	return p.intents()
}

func (p told) ConfirmIntent(context.Context, provider.ConfirmRequest) (provider.IntentOutcome, error) {
	return p.intents()
}

func (p told) CancelIntent(context.Context, provider.CancelRequest) (provider.IntentOutcome, error) {
	return p.intents()
}

func (p told) FindCharge(context.Context, provider.Lookup) ([]provider.Charge, error) {
	return make([]provider.Charge, p.hits), p.err
}

func (p told) FindRefund(context.Context, provider.Lookup) ([]provider.Refund, error) {
	return make([]provider.Refund, p.hits), p.err
}

func (p told) FindIntent(context.Context, provider.Lookup) ([]provider.Intent, error) {
	return make([]provider.Intent, p.hits), p.err
}

func (p told) RefundsOf(context.Context, string) ([]provider.Refund, error) {
	return make([]provider.Refund, p.hits), p.err
}

func (p told) GetCharge(context.Context, string) (*provider.Charge, error) {
	return read[provider.Charge](p)
}
func (p told) GetRefund(context.Context, string) (*provider.Refund, error) {
	return read[provider.Refund](p)
}
func (p told) GetIntent(context.Context, string) (*provider.Intent, error) {
	return read[provider.Intent](p)
}
func (p told) GetDispute(context.Context, string) (*provider.Dispute, error) {
	return read[provider.Dispute](p)
}

func (p told) GetFraudWarning(context.Context, string) (*provider.FraudWarning, error) {
	return read[provider.FraudWarning](p)
}

func (p told) ListDisputes(context.Context, time.Time, time.Time, func(provider.Dispute) error) error {
	return p.err
}

func (p told) ListCharges(context.Context, time.Time, time.Time, func(provider.Charge) error) error {
	return p.err
}

func (p told) ListRefunds(context.Context, time.Time, time.Time, func(provider.Refund) error) error {
	return p.err
}

func (p told) ListIntents(context.Context, time.Time, time.Time, func(provider.Intent) error) error {
	return p.err
}

func (p told) EventObject([]byte) provider.EventObject { return provider.EventObject{} }

func (p told) Account(context.Context) (provider.Account, error) {
	return provider.Account{}, p.err
}

// Whatever a provider answers is handed on as it is, and counted once under a name that says what
// it means.
func TestProviderCallsAreNamed(t *testing.T) {
	t.Parallel()
	const (
		moves = "Charge Capture Refund CreateIntent UpdateIntent ConfirmIntent"
		lists = " ListCharges ListRefunds ListIntents ListDisputes Account"
		asks  = "FindCharge FindRefund FindIntent GetCharge GetRefund GetIntent GetDispute GetFraudWarning"
	)
	fails := func(e provider.Error) told { return told{err: &e} }
	for _, c := range []struct {
		calls string
		told  told
		want  string
	}{
		{"Charge Capture Refund", told{status: provider.Succeeded}, "succeeded"},
		{"Charge Capture Refund", told{status: provider.Pending}, "pending"},
		{"Charge Capture Refund", told{status: provider.Failed}, "declined"},
		{"CreateIntent", told{intent: provider.IntentRequiresConfirmation}, "succeeded"},
		{"UpdateIntent", told{intent: provider.IntentRequiresPaymentMethod}, "succeeded"},
		{"CancelIntent", told{intent: provider.IntentCanceled}, "succeeded"},
		{"ConfirmIntent", told{intent: provider.IntentSucceeded}, "succeeded"},
		{"ConfirmIntent", told{intent: provider.IntentRequiresCapture}, "succeeded"},
		{"ConfirmIntent", told{intent: provider.IntentRequiresAction}, "pending"},
		{"ConfirmIntent", told{intent: provider.IntentProcessing}, "pending"},
		{"ConfirmIntent", told{intent: provider.IntentRequiresPaymentMethod}, "declined"},
		{moves, told{no: &provider.Refusal{Decline: true}}, "declined"},
		{moves, told{no: &provider.Refusal{}}, "refused"},
		{asks, told{hits: 1}, "found"},
		{asks, told{}, "absent"},
		{lists, told{}, "succeeded"},
		{moves + " " + asks + lists, fails(provider.Error{Kind: provider.StoredFailure}), "unknown"},
		{moves + " " + asks + lists, fails(provider.Error{Kind: provider.Unsupported}), "unknown"},
		{asks, fails(provider.Error{Kind: provider.Incomplete}), "unknown"},
		{moves + " " + asks + lists, told{err: errors.New("of no kind")}, "unknown"},
		{moves + " " + asks + lists, fails(provider.Error{Kind: provider.NotExecuted}), "not_executed"},
		{moves + " " + asks + lists, fails(provider.Error{Kind: provider.RateLimited}), "rate_limited"},
		{moves + " " + asks + lists, fails(provider.Error{Kind: provider.Credentials}), "credentials"},
		{moves, fails(provider.Error{Kind: provider.InFlight}), "in_flight"},
		{moves, fails(provider.Error{Kind: provider.Conflict}), "conflict"},
	} {
		for name := range strings.FieldsSeq(c.calls) {
			m := metrics.New(quiet())
			call := func(p provider.Provider) []any {
				method := reflect.ValueOf(p).MethodByName(name)
				args := []reflect.Value{reflect.ValueOf(t.Context())}
				for i := 1; i < method.Type().NumIn(); i++ {
					args = append(args, reflect.Zero(method.Type().In(i)))
				}
				var results []any
				for _, v := range method.Call(args) {
					results = append(results, v.Interface())
				}
				return results
			}
			if got, want := call(m.Provider(c.told)), call(c.told); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v was handed on as %v", name, want, got)
			}
			if counted := providerCounts(m); counted != fmt.Sprintf("%s %s", snake(name), c.want) {
				t.Errorf("%s: counted as %q, want %s", name, counted, c.want)
			}
		}
	}
}

func snake(name string) string {
	if name == "GetFraudWarning" {
		return "get_fraud_warning"
	}
	for _, second := range []string{"Disputes", "Charges", "Charge", "Refunds", "Refund", "Intents", "Intent", "Dispute"} {
		if first, ok := strings.CutSuffix(name, second); ok && first != "" {
			return strings.ToLower(first + "_" + second)
		}
	}
	return strings.ToLower(name)
}

// providerCounts returns call and result of all calls that were counted.
func providerCounts(m *metrics.Metrics) string {
	w := httptest.NewRecorder()
	m.Handler(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, metrics.Path, nil))
	var counted []string
	for line := range strings.Lines(w.Body.String()) {
		if labels, ok := strings.CutPrefix(line, `paidonce_provider_calls_total{call="`); ok && !strings.HasSuffix(line, " 0\n") {
			call, rest, _ := strings.Cut(labels, `",result="`)
			result, n, _ := strings.Cut(rest, `"} `)
			if n != "1\n" {
				result += " " + n
			}
			counted = append(counted, call+" "+result)
		}
	}
	return strings.Join(counted, ", ")
}

// A right that the API key lacks is logged once and shown until it is there.
func TestDeniedCallsAreShown(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	m := metrics.New(slog.New(slog.NewTextHandler(&log, nil)))
	shown := func() string {
		w := httptest.NewRecorder()
		m.Handler(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, metrics.Path, nil))
		_, rest, _ := strings.Cut(w.Body.String(), `paidonce_provider_call_denied{call="get_dispute"} `)
		n, _, _ := strings.Cut(rest, "\n")
		return n
	}
	denied := told{err: &provider.Error{Kind: provider.Credentials, Denied: true, Message: "rak_dispute_read"}}
	unknown := told{err: &provider.Error{Kind: provider.Unknown}}
	for i, c := range []struct {
		told told
		want string
		logs int
	}{{unknown, "0", 0}, {denied, "1", 1}, {denied, "1", 1}, {unknown, "1", 1}, {told{hits: 1}, "0", 2}} {
		_, _ = m.Provider(c.told).GetDispute(t.Context(), "dp_1")
		if got := shown(); got != c.want || strings.Count(log.String(), "\n") != c.logs {
			t.Errorf("%d: shown is %s, want %s; logged %s", i, got, c.want, log.String())
		}
	}
	if !strings.Contains(log.String(), "rak_dispute_read") {
		t.Error(log.String())
	}
}
