package charges_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"paidonce/inbox"
	"paidonce/internal/world"
	"paidonce/provider/stripesim"
)

// captureLost asks for a capture of 700 that has no outcome, since its answer was lost, or since it
// did not arrive.
func captureLost(w *world.World, t *testing.T, i world.Instance, h held, fault string) {
	t.Helper()
	if _, err := w.Sim.AddFault(stripesim.Rule{
		Match: stripesim.Match{Method: http.MethodPost}, Count: 1,
		Fault: stripesim.Fault{Type: fault},
	}); err != nil {
		t.Fatal(err)
	}
	_, err := i.Capture("capture", h.id, 700)
	world.WantUnknown(t, err)
}

// wait has the inbox process what arrived, and checks that all of it waits.
func wait(w *world.World, t *testing.T, in *inbox.Inbox) {
	t.Helper()
	if _, err := in.RunOnce(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	if done, all := w.Count(`SELECT count(processed_at) FROM provider_events`),
		w.Count(`SELECT count(*) FROM provider_events`); done > 0 || all == 0 {
		t.Errorf("%d of the provider's %d events did not wait", done, all)
	}
}

// A refund that somebody makes elsewhere, of a charge whose capture has no outcome yet, is learnt
// after the capture: from each of the provider's events alone, and from both.
func TestRefundedElsewhereWhileCaptured(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{stripesim.DropAfter, stripesim.DropBefore} {
		for _, news := range [][]string{
			{"charge.refunded"}, {"refund.created"}, {"charge.refunded", "refund.created"},
		} {
			t.Run(fault+", "+strings.Join(news, ", "), func(t *testing.T) {
				t.Parallel()
				bothFlows(t, func(t *testing.T, w *world.World) {
					i := w.Start()
					h := hold(w, t, i)
					captureLost(w, t, i, h, fault)
					if fault == stripesim.DropBefore {
						if err := w.Sim.CaptureHold(h.provider, 700); err != nil {
							t.Fatal(err)
						}
					}
					in, refund := w.Inbox(i), inDashboard(w, h.provider, 500)
					for n, kind := range news {
						object := h.provider
						if kind == "refund.created" {
							object = refund
						}
						w.Deliver(in, fmt.Sprint("evt_", n), kind, object)
					}
					wait(w, t, in)
					res, err := i.Capture("capture", h.id, 700)
					if err != nil || res.Answer.Code != http.StatusOK {
						t.Fatalf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
					}
					w.Process(in)
					explains(i, w, h.id, h.provider, "500 provider succeeded")
					if got, want := told(w, h.id),
						"charge.succeeded charge.captured charge.refunded"; got != want {
						t.Errorf("the events of the charge are %s, want %s", got, want)
					}
					wantEvents(w, map[string]int{
						"charge.succeeded": 1, "charge.captured": 1, "charge.refunded": 1,
						"refund.created": 1,
					})
					agree(w, t, i)
				})
			})
		}
	}
}

// So is that a hold was let go of elsewhere, also if the capture that is refused for it could not
// ask why.
func TestReleasedElsewhereWhileCaptured(t *testing.T) {
	t.Parallel()
	for name, e := range elsewheres {
		if e.event[false] == "charge.captured" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothFlows(t, func(t *testing.T, w *world.World) {
				i := w.Start()
				h := hold(w, t, i)
				captureLost(w, t, i, h, stripesim.DropBefore)
				if err := e.happen(w, h); err != nil {
					t.Fatal(err)
				}
				in := w.Inbox(i)
				for n, kind := range e.news[h.intent != ""] {
					w.Deliver(in, fmt.Sprint("evt_", n), kind, about(w, t, h, kind))
				}
				wait(w, t, in)
				if res, err := i.Capture("capture", h.id, 700); err != nil ||
					res.Answer.Code != http.StatusBadRequest {
					t.Fatalf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
				}
				w.Process(in)
				wantReleased(w, i, h, e.event[h.intent != ""])
				agree(w, t, i)
			})
		})
	}
}
