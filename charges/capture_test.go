package charges_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/problem"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// hold is a charge that is world.Authorised, with its ids at the provider.
type held struct{ id, provider, intent string }

func hold(w *world.World, t *testing.T, i world.Instance) held {
	t.Helper()
	h := held{id: i.MustCharge("held", world.Authorised)}
	if err := w.Pool.QueryRow(
		t.Context(), `SELECT provider_id, coalesce(intent_id, '') FROM charges WHERE id = $1`, h.id,
	).Scan(&h.provider, &h.intent); err != nil {
		t.Fatal(err)
	}
	return h
}

// capturedElsewhere captures the charge behind our back.
func capturedElsewhere(w *world.World, t *testing.T, h held, amount int64) {
	t.Helper()
	out, err := w.Provider.Capture(t.Context(), provider.CaptureRequest{
		IdempotencyKey: "elsewhere",
		Tags:           provider.Tags{Operation: "op_elsewhere", Installation: "other"}, ChargeID: h.provider,
		IntentID: h.intent, Amount: amount,
	})
	if err != nil || out.Charge == nil {
		t.Fatalf("%+v, %v", out, err)
	}
}

// release lets go of the charge's money at the provider.
func release(w *world.World, t *testing.T, h held) {
	t.Helper()
	path, body := "/v1/refunds", "charge="+h.provider
	if h.intent != "" {
		path, body = "/v1/payment_intents/"+h.intent+"/cancel", ""
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer sk_test_x")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	if w.Sim.ServeHTTP(rec, r); rec.Code != http.StatusOK {
		t.Fatalf("got %d %s, want 200", rec.Code, rec.Body)
	}
}

// bothFlows runs a test with charges that are made in one call, and with those that go through a
// payment intent.
func bothFlows(t *testing.T, test func(t *testing.T, w *world.World)) {
	for name, start := range map[string]func(testing.TB) *world.World{"charge": world.New, "intent": world.NewIntents} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// The provider refuses the first attempt: the charge is captured. As was asked for, that is the
// answer, as after a database that was set back.
func TestCaptureOfAChargeCapturedAsAskedFor(t *testing.T) {
	t.Parallel()
	bothFlows(t, func(t *testing.T, w *world.World) {
		i := w.Start()
		h := hold(w, t, i)
		capturedElsewhere(w, t, h, 1500)
		// the charge cannot be read at first
		w.LookUpFault(1, stripesim.Fault{Type: stripesim.StatusBefore, Status: 503})
		_, err := i.Capture("k", h.id, 1500)
		var u *idemkeys.Unknown
		if !errors.As(err, &u) || !u.NotExecuted {
			t.Errorf("%v; nothing was executed", err)
		}
		res, err := i.Capture("k", h.id, 1500)
		if err != nil || res.Answer.Code != http.StatusOK ||
			!strings.Contains(string(res.Answer.Body), `"amount_captured":1500`) {
			t.Fatalf("got %d %s, %v, want 200", res.Answer.Code, res.Answer.Body, err)
		}
		oneCapture(w, t, i, h, 1500)
	})
}

// Captured otherwise, the refusal is the answer, and the charge is known to be captured with that:
// it can be given back.
func TestCaptureOfAChargeCapturedOtherwise(t *testing.T) {
	t.Parallel()
	bothFlows(t, func(t *testing.T, w *world.World) {
		i := w.Start()
		h := hold(w, t, i)
		capturedElsewhere(w, t, h, 1200)
		w.LookUpFault(1, stripesim.Fault{Type: stripesim.StatusBefore, Status: 503})
		_, err := i.Capture("k", h.id, 1500)
		world.WantUnknown(t, err)
		for range 2 {
			res, err := i.Capture("k", h.id, 1500)
			if err != nil || res.Answer.Code != http.StatusBadRequest ||
				!strings.Contains(string(res.Answer.Body), `"charge_already_captured"`) {
				t.Fatalf("got %d %s, %v, want 400", res.Answer.Code, res.Answer.Body, err)
			}
		}
		oneCapture(w, t, i, h, 1200)
	})
}

// oneCapture checks that a charge is captured once, with amount, that one event says so, and that
// it can be given back.
func oneCapture(w *world.World, t *testing.T, i world.Instance, h held, amount int) {
	t.Helper()
	if n := w.Count(
		`SELECT amount_captured FROM charges WHERE id = $1 AND captured`, h.id,
	); n != amount {
		t.Errorf("%d captured, want %d", n, amount)
	}
	if n := w.Count(`SELECT count(*) FROM outbox WHERE type = 'charge.captured'`); n != 1 {
		t.Errorf("%d events", n)
	}
	if n := w.Sim.Stats().CapturesExecuted; n != 1 {
		t.Errorf("%d captures at the provider", n)
	}
	var no *problem.Error
	if _, err := i.Capture("another", h.id, 0); !errors.As(err, &no) ||
		no.Code != problem.ChargeAlreadyCaptured {
		t.Errorf("another key: %v", err)
	}
	if res, err := i.Refund("back", h.id, 0); err != nil || res.Answer.Code != http.StatusCreated {
		t.Errorf("giving it back: %d %s, %v", res.Answer.Code, res.Answer.Body, err)
	}
	if n := w.Count(`SELECT amount_refunded FROM charges WHERE id = $1`, h.id); n != amount {
		t.Errorf("%d given back", n)
	}
}

// What became of the charge while a capture's outcome was not known, within the key's window and
// past it.
func TestCapturesThatSomethingCameBetween(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		between func(t *testing.T, w *world.World, h held)
		end     string
		late    string // past the window
		code    string
	}{
		"nothing": {
			func(*testing.T, *world.World, held) {}, "settled", "failed", "capture_never_made",
		},
		"captured as asked": {
			func(t *testing.T, w *world.World, h held) { capturedElsewhere(w, t, h, 1500) },
			"settled", "settled", "captured",
		},
		"captured otherwise": {
			func(t *testing.T, w *world.World, h held) { capturedElsewhere(w, t, h, 700) },
			"parked", "parked", "",
		},
		"released": {
			func(t *testing.T, w *world.World, h held) { release(w, t, h) }, "refused", "refused",
			"charge_released",
		},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, late %t", name, late), func(t *testing.T) {
				t.Parallel()
				bothFlows(t, func(t *testing.T, w *world.World) {
					i := w.Start()
					h := hold(w, t, i)
					if _, err := w.Sim.AddFault(
						stripesim.Rule{
							Match: stripesim.Match{Method: http.MethodPost}, Count: 1,
							Fault: stripesim.Fault{Type: stripesim.DropBefore},
						},
					); err != nil {
						t.Fatal(err)
					}
					_, err := i.Capture("k", h.id, 1500)
					world.WantUnknown(t, err)
					c.between(t, w, h)
					want := c.end
					if late {
						want = c.late
						w.Age(25 * time.Hour)
						w.Sim.SetClock(0)
					}
					sent := w.Sim.Stats().CaptureRequests
					if got := bringToAnEnd(w, i, "k", false); got != want {
						t.Fatalf("it ended %q, want %q: %s", got, want, w.LastError("k"))
					}
					if now := w.Sim.Stats().CaptureRequests; late && now != sent {
						t.Errorf("sent %d times past the window", now-sent)
					}
					var body string
					_ = w.Pool.QueryRow(
						context.Background(),
						`SELECT convert_from(response_body, 'UTF8') FROM idempotency_keys WHERE key = 'k' AND response_body IS NOT NULL`,
					).Scan(&body)
					if want != "parked" && (late || name != "nothing") &&
						!strings.Contains(body, c.code) {
						t.Errorf("the answer is %s, want %s", body, c.code)
					}
				})
			})
		}
	}
}
