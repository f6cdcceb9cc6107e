package metrics_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"paidonce/api"
	"paidonce/metrics"
	"paidonce/provider"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

type instant struct{ provider.Provider }

func (instant) Charge(context.Context, *provider.ChargeRequest) (provider.ChargeOutcome, error) {
	return provider.ChargeOutcome{Charge: &charge}, nil
}

var charge = provider.Charge{Status: provider.Succeeded}

// All that a charge pays for being measured: its request, its call of the provider, its place among
// those in flight.
func BenchmarkChargeMeasured(b *testing.B) {
	m := metrics.New(quiet())
	observe, psp := m.Route("createCharge"), m.Provider(instant{})
	handler := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = psp.Charge(r.Context(), &provider.ChargeRequest{})
		observe(api.OutcomeFresh, 3*time.Millisecond)
	}))
	r := httptest.NewRequest(http.MethodPost, "/v1/charges", nil)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			handler.ServeHTTP(nil, r)
		}
	})
}
