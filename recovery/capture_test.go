package recovery_test

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
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// held is a charge that is authorised, with its ids at the provider.
type held struct{ id, provider, intent string }

func (w *world) held(t *testing.T, i instance) held {
	t.Helper()
	h := held{id: i.made(w, "held", authorised)}
	if err := w.pool.QueryRow(t.Context(), `SELECT provider_id, coalesce(intent_id, '') FROM charges WHERE id = $1`, h.id).Scan(&h.provider, &h.intent); err != nil {
		t.Fatal(err)
	}
	return h
}

// capturedElsewhere captures the charge behind our back.
func (w *world) capturedElsewhere(t *testing.T, h held, amount int64) {
	t.Helper()
	out, err := w.psp.Capture(t.Context(), provider.CaptureRequest{
		IdempotencyKey: "elsewhere", Tags: provider.Tags{Operation: "op_elsewhere", Installation: "other"}, ChargeID: h.provider, IntentID: h.intent, Amount: amount,
	})
	if err != nil || out.Charge == nil {
		t.Fatalf("%+v, %v", out, err)
	}
}

// release lets go of the charge's money at the provider.
func (w *world) release(t *testing.T, h held) {
	t.Helper()
	path, body := "/v1/refunds", "charge="+h.provider
	if h.intent != "" {
		path, body = "/v1/payment_intents/"+h.intent+"/cancel", ""
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer sk_test_x")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	if w.sim.ServeHTTP(rec, r); rec.Code != http.StatusOK {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
}

func bothFlows(t *testing.T, test func(t *testing.T, w *world)) {
	for name, world := range map[string]func(*testing.T) *world{"charge": newWorld, "intent": newIntentWorld} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, world(t))
		})
	}
}

// The provider refuses the first attempt: the charge is captured. As was asked for, that is the answer, as after a database that was set back.
func TestCaptureOfAChargeCapturedAsAskedFor(t *testing.T) {
	t.Parallel()
	bothFlows(t, func(t *testing.T, w *world) {
		i := w.start(nil, nil)
		h := w.held(t, i)
		w.capturedElsewhere(t, h, 1500)
		w.lookupFault(1, stripesim.Fault{Type: stripesim.StatusBefore, Status: 503}) // the charge cannot be read at first
		_, err := i.capture(w, "k", h.id, 1500)
		var u *idemkeys.Unknown
		if !errors.As(err, &u) || !u.NotExecuted {
			t.Errorf("%v; nothing was executed", err)
		}
		res, err := i.capture(w, "k", h.id, 1500)
		if err != nil || res.Answer.Code != http.StatusOK || !strings.Contains(string(res.Answer.Body), `"amount_captured":1500`) {
			t.Fatalf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
		}
		w.oneCapture(t, i, h, 1500)
	})
}

// Captured otherwise, the refusal is the answer, and the charge is known to be captured with that: it can be given back.
func TestCaptureOfAChargeCapturedOtherwise(t *testing.T) {
	t.Parallel()
	bothFlows(t, func(t *testing.T, w *world) {
		i := w.start(nil, nil)
		h := w.held(t, i)
		w.capturedElsewhere(t, h, 1200)
		w.lookupFault(1, stripesim.Fault{Type: stripesim.StatusBefore, Status: 503})
		_, err := i.capture(w, "k", h.id, 1500)
		wantUnknown(t, err)
		for range 2 {
			res, err := i.capture(w, "k", h.id, 1500)
			if err != nil || res.Answer.Code != http.StatusBadRequest || !strings.Contains(string(res.Answer.Body), `"charge_already_captured"`) {
				t.Fatalf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
			}
		}
		w.oneCapture(t, i, h, 1200)
	})
}

// oneCapture checks that a charge is captured once, with amount, that one event says so, and that it can be given back.
func (w *world) oneCapture(t *testing.T, i instance, h held, amount int) {
	t.Helper()
	if n := w.count(`SELECT amount_captured FROM charges WHERE id = $1 AND captured`, h.id); n != amount {
		t.Errorf("%d captured, want %d", n, amount)
	}
	if n := w.count(`SELECT count(*) FROM outbox WHERE type = 'charge.captured'`); n != 1 {
		t.Errorf("%d events", n)
	}
	if n := w.sim.Stats().CapturesExecuted; n != 1 {
		t.Errorf("%d captures at the provider", n)
	}
	var no *idemkeys.Refused
	if _, err := i.capture(w, "another", h.id, 0); !errors.As(err, &no) || no.Problem.Code != "charge_already_captured" {
		t.Errorf("another key: %v", err)
	}
	if res, err := i.refund(w, "back", h.id, 0); err != nil || res.Answer.Code != http.StatusCreated {
		t.Errorf("giving it back: %d %s, %v", res.Answer.Code, res.Answer.Body, err)
	}
	if n := w.count(`SELECT amount_refunded FROM charges WHERE id = $1`, h.id); n != amount {
		t.Errorf("%d given back", n)
	}
}

// What became of the charge while a capture's outcome was not known, within the key's window and past it.
func TestCapturesThatSomethingCameBetween(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		between func(t *testing.T, w *world, h held)
		end     string
		late    string // past the window
		code    string
	}{
		"nothing":            {func(*testing.T, *world, held) {}, "settled", "failed", "capture_never_made"},
		"captured as asked":  {func(t *testing.T, w *world, h held) { w.capturedElsewhere(t, h, 1500) }, "settled", "settled", "captured"},
		"captured otherwise": {func(t *testing.T, w *world, h held) { w.capturedElsewhere(t, h, 700) }, "parked", "parked", ""},
		"released":           {func(t *testing.T, w *world, h held) { w.release(t, h) }, "refused", "refused", "charge_released"},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, late %t", name, late), func(t *testing.T) {
				t.Parallel()
				bothFlows(t, func(t *testing.T, w *world) {
					i := w.start(nil, nil)
					h := w.held(t, i)
					if _, err := w.sim.AddFault(stripesim.Rule{Match: stripesim.Match{Method: http.MethodPost}, Count: 1, Fault: stripesim.Fault{Type: stripesim.DropBefore}}); err != nil {
						t.Fatal(err)
					}
					_, err := i.capture(w, "k", h.id, 1500)
					wantUnknown(t, err)
					c.between(t, w, h)
					want := c.end
					if late {
						want = c.late
						w.age(25 * time.Hour)
						w.sim.SetClock(0)
					}
					sent := w.sim.Stats().CaptureRequests
					if got := w.bringToAnEnd(i, "k", false); got != want {
						t.Fatalf("it ended %q, want %q: %s", got, want, w.lastError("k"))
					}
					if now := w.sim.Stats().CaptureRequests; late && now != sent {
						t.Errorf("sent %d times past the window", now-sent)
					}
					var body string
					_ = w.pool.QueryRow(context.Background(), `SELECT convert_from(response_body, 'UTF8') FROM idempotency_keys WHERE key = 'k' AND response_body IS NOT NULL`).Scan(&body)
					if want != "parked" && (late || name != "nothing") && !strings.Contains(body, c.code) {
						t.Errorf("the answer is %s, want %s", body, c.code)
					}
				})
			})
		}
	}
}
