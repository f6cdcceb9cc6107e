package api_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"paidonce/accounts"
	"paidonce/api"
	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/outbox"
)

// sink takes an answer and forgets it.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

// instant is a domain that costs nothing.
type instant struct{ domain }

func (instant) Cached(context.Context, string) (accounts.Identity, error) {
	return accounts.Identity{AccountID: "acct_A", APIKeyID: "key_A"}, nil
}

var instantAnswer = made(idemkeys.Request{})

func (instant) Create(_ context.Context, r idemkeys.Request, _ charges.Params) (idemkeys.Result, error) {
	res := instantAnswer
	res.OriginalRequest = r.RequestID
	return res, nil
}

// What the edge itself costs for a charge: everything but the network and the domain. The log is
// written, to nowhere.
func BenchmarkCreateCharge(b *testing.B) {
	server, err := api.New(api.Config{
		Charges: instant{}, Accounts: instant{}, Keys: &idemkeys.Keys{}, Events: outbox.New(outbox.Config{}), Log: slog.New(slog.NewJSONHandler(io.Discard, nil)),
		Ready: func(context.Context) error { return nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	for name, body := range map[string]struct{ mediaType, text string }{
		"json": {"application/json", `{"amount":2000,"currency":"usd","source":"tok_visa","description":"Order 6735","metadata":{"order":"6735","shop":"berlin"}}`},
		"form": {"application/x-www-form-urlencoded", "amount=2000&currency=usd&source=tok_visa&description=Order+6735&metadata[order]=6735&metadata[shop]=berlin"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/v1/charges", strings.NewReader(body.text))
				if err != nil {
					b.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+secret)
				req.Header.Set("Content-Type", body.mediaType)
				req.Header.Set("Idempotency-Key", "3f0c8a0e-5d4f-4f0e-9a43-0b6f6f5b2a11")
				server.ServeHTTP(&sink{header: http.Header{}}, req)
			}
		})
	}
}
