package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"paidonce/api/apitest"
)

// newIntent is a body for /v1/payment_intents; more are further parameters.
func newIntent(more string) string {
	return `{"amount":2000,"currency":"usd","payment_method_types":["card"]` + more + `}`
}

const byCard = `,"payment_method":"pm_card_visa","confirm":true`

// madeIntent is what the tests read of an intent.
type madeIntent struct {
	ID, Status   string
	ClientSecret string `json:"client_secret"`
}

// payInBrowser has the payer of an intent confirm it at the provider, with nothing but its secret,
// until that has taken it.
func (w *world) payInBrowser(i madeIntent) {
	w.t.Helper()
	eventually(w.t, "the payer pays "+i.ID, func() bool {
		res, err := http.PostForm(w.sim.url+"/v1/payment_intents/"+i.ID+"/confirm", url.Values{
			"key": {"pk_test_shop"}, "client_secret": {i.ClientSecret},
			"payment_method": {"pm_card_visa"},
		})
		if err != nil { // the simulator drops answers
			return false
		}
		_ = res.Body.Close()
		// 400: it was taken before, and the answer was lost
		return res.StatusCode == http.StatusOK || res.StatusCode == http.StatusBadRequest
	})
}

// reconcileAlways does what cron does, more often and without waiting until a payer is asked about.
func (w *world) reconcileAlways() (stop func()) {
	over := make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() {
		for {
			execSQL(w.t, w.dbURL,
				"UPDATE charges SET awaits_at = clock_timestamp() WHERE awaits_at IS NOT NULL")
			w.must("reconcile")
			select {
			case <-over:
				return
			case <-time.After(300 * time.Millisecond):
			}
		}
	})
	stop = sync.OnceFunc(func() { close(over); working.Wait() })
	w.t.Cleanup(stop)
	return stop
}

// checkIntents compares what is paid with what the provider has: each order once, and told once.
func (w *world) checkIntents(orders int) {
	w.t.Helper()
	if net := w.sim.net(); net != int64(2000*orders) {
		w.t.Errorf("the provider has taken %d for %d orders", net, orders)
	}
	for what, query := range map[string]string{
		"charges that succeeded": "SELECT count(*) FROM charges WHERE status = 'succeeded'",
		"orders that are paid": "SELECT count(DISTINCT reference) FROM charges " +
			"WHERE status = 'succeeded'",
		"events of charges": "SELECT count(*) FROM outbox WHERE type = 'charge.succeeded'",
		"events of intents": "SELECT count(*) FROM outbox WHERE type = 'payment_intent.succeeded'",
	} {
		if n := querySQL[int](w.t, w.dbURL, query); n != orders {
			w.t.Errorf("%d %s, want %d", n, what, orders)
		}
	}
	for what, query := range map[string]string{
		"keys in progress": "SELECT count(*) FROM idempotency_keys WHERE status = 'in_progress'",
		"charges whose payer is awaited": "SELECT count(*) FROM charges " +
			"WHERE awaits_at IS NOT NULL AND status = 'pending'",
	} {
		if n := querySQL[int](w.t, w.dbURL, query); n != 0 {
			w.t.Errorf("%d %s", n, what)
		}
	}
}

// Three clients try to pay each order by payment intents, each with keys of its own: one creates
// and confirms in one call, one in two, and the third lets the payer confirm in the browser.
// Servers are killed, answers and news are lost: each order is paid once, and told of once.
func TestManyClientsPayEachOrderOnceByIntents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "STRIPE_WEBHOOK_SECRET=whsec_intents", inbox)
	orders := chaosOrders(t)
	w.sim.arm(orders/3, fault{"type": "drop_after"})
	d := w.deploy(4, orders/5, func(p *proc) { w.sim.tellTo(p, "whsec_intents") })
	stop := w.reconcileAlways()
	together(3*orders, func(n int) {
		who, order := n%3, n/3
		key := fmt.Sprint("client-", who, "-order-", order)
		more := fmt.Sprintf(`,"reference":"order %d"`, order)
		if who == 0 {
			more += byCard
		}
		a, _ := untilPosted(t, d.client, "/v1/payment_intents", key, newIntent(more))
		if a.Code != http.StatusCreated {
			if code := a.Error().Code; code != "reference_already_paid" {
				t.Errorf("client %d, order %d: %d %s", who, order, a.Code, a.Body)
			}
			return
		}
		var i madeIntent
		a.JSON(&i)
		switch who {
		case 1:
			a, _ = untilPosted(t, d.client, "/v1/payment_intents/"+i.ID+"/confirm",
				"confirm-"+key, `{"payment_method":"pm_card_visa"}`)
			a.JSON(&i)
		case 2:
			w.payInBrowser(i)
			return
		}
		if i.Status != "succeeded" {
			t.Errorf("client %d, order %d: %d %s", who, order, a.Code, a.Body)
		}
	})
	<-d.ended
	eventually(t, "every payment is known", func() bool {
		return querySQL[int](t, w.dbURL,
			"SELECT count(*) FROM charges WHERE status = 'succeeded'") >= orders
	})
	stop()
	w.checkIntents(orders)
}

// A server is killed at each moment of a call that creates and confirms an intent, of one that
// confirms it, and while the payer's own confirmation is told. The same calls then end it.
func TestKilledWithIntents(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]struct{ create, confirm string }{
		"create and confirm": {create: byCard},
		"confirm":            {confirm: `{"payment_method":"pm_card_visa"}`},
		"the payer":          {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "STRIPE_WEBHOOK_SECRET=whsec_intents", inbox)
			survivor := w.client(w.serve())
			next := func() *apitest.Client { return survivor }
			moments := []int{0, 10, 50, 150, 250, 305, 320, 450, 610, 640}
			create := func(n int) (string, string) {
				return fmt.Sprint("key-", n), newIntent(fmt.Sprintf(`,"reference":"%d"`, n) + steps.create)
			}
			together(len(moments), func(n int) {
				key, body := create(n)
				path := "/v1/payment_intents"
				var made madeIntent
				if steps.create == "" {
					a, _ := untilPosted(t, next, path, key, body)
					a.JSON(&made)
				}
				doomed := w.serve()
				w.sim.slow(300)
				switch {
				case steps.confirm != "":
					path += "/" + made.ID + "/confirm"
					key, body = "confirm-"+key, steps.confirm
				case steps.create == "":
					w.sim.tellTo(doomed, "whsec_intents")
					go w.payInBrowser(made)
				}
				if steps != (struct{ create, confirm string }{}) {
					go func() { _, _ = tryPost(t, w.client(doomed), path, key, body) }()
				}
				time.Sleep(time.Duration(moments[n]) * time.Millisecond)
				doomed.signal(syscall.SIGKILL)
				doomed.wait()
				if steps.create == "" && steps.confirm == "" {
					w.payInBrowser(made)
					return
				}
				a, _ := untilPosted(t, next, path, key, body)
				if !strings.Contains(string(a.Body), `"status":"succeeded"`) {
					t.Errorf("killed after %d ms, then: %d %s", moments[n], a.Code, a.Body)
				}
			})
			stop := w.reconcileAlways()
			eventually(t, "every payment is known", func() bool {
				return querySQL[int](t, w.dbURL,
					"SELECT count(*) FROM charges WHERE status = 'succeeded'") >= len(moments)
			})
			stop()
			w.checkIntents(len(moments))
		})
	}
}
