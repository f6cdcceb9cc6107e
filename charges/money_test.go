package charges_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/charges"
	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/problem"
	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// crashingTx crashes at the COMMIT of the nth transaction that begins: rolled back, or committed
// with the answer lost.
type crashingTx struct {
	*pgxpool.Pool
	nth      int64
	rollback bool
	crashed  chan struct{}
	begun    *atomic.Int64
}

func (p crashingTx) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	tx, err := p.Pool.BeginTx(ctx, options)
	if err != nil || p.begun.Add(1) != p.nth {
		return tx, err
	}
	return doomedTx{tx, p}, nil
}

type doomedTx struct {
	pgx.Tx
	p crashingTx
}

func (t doomedTx) Commit(ctx context.Context) error {
	if t.p.rollback {
		_ = t.Rollback(ctx)
	} else if err := t.Tx.Commit(ctx); err != nil {
		return err
	}
	close(t.p.crashed)
	world.Crash()
	return nil
}

// crashingMoney crashes around the provider's refund or capture.
type crashingMoney struct {
	provider.Provider
	after   bool
	crashed chan struct{}
}

func (p crashingMoney) Refund(
	ctx context.Context, r provider.RefundRequest,
) (o provider.RefundOutcome, err error) {
	p.around(func() { o, err = p.Provider.Refund(ctx, r) })
	return o, err
}

func (p crashingMoney) Capture(
	ctx context.Context, r provider.CaptureRequest,
) (o provider.ChargeOutcome, err error) {
	p.around(func() { o, err = p.Provider.Capture(ctx, r) })
	return o, err
}

func (p crashingMoney) around(call func()) {
	if p.after {
		call()
	}
	close(p.crashed)
	world.Crash()
}

// Refund and capture × every step boundary × both drivers: one refund, one capture, one event, one
// answer.
func TestMoneyCrashMatrix(t *testing.T) {
	t.Parallel()
	tx := func(nth int64, rollback bool) func(*world.World, chan struct{}) (
		db.Pool, provider.Provider,
	) {
		return func(w *world.World, c chan struct{}) (db.Pool, provider.Provider) {
			return crashingTx{w.Pool, nth, rollback, c, &atomic.Int64{}}, nil
		}
	}
	call := func(after bool) func(*world.World, chan struct{}) (db.Pool, provider.Provider) {
		return func(w *world.World, c chan struct{}) (db.Pool, provider.Provider) {
			return nil, crashingMoney{w.Provider, after, c}
		}
	}
	for place, dies := range map[string]func(*world.World, chan struct{}) (
		db.Pool, provider.Provider,
	){
		"inside commit 1": tx(1, true), "after commit 1": tx(1, false),
		"before the call": call(false), "after the call": call(true),
		"inside commit 2": tx(2, true), "after commit 2": tx(2, false),
	} {
		for _, kind := range []string{"refund", "capture"} {
			for _, driver := range []string{"client", "reconciler"} {
				t.Run(kind+", "+place+", then "+driver, func(t *testing.T) {
					t.Parallel()
					w := world.New(t)
					second := w.Start()
					charge := second.MustCharge(
						"charge",
						map[string]charges.Params{
							"refund": world.Twenty, "capture": world.Authorised,
						}[kind],
					)
					do := func(i world.Instance) (idemkeys.Result, error) {
						if kind == "refund" {
							return i.Refund("k", charge, 700)
						}
						return i.Capture("k", charge, 700)
					}
					crashed := make(chan struct{})
					doomed := w.StartWith(dies(w, crashed))
					world.UntilCrash(t, crashed, func() { _, _ = do(doomed) })
					w.Age(w.Keys.StaleAfter)
					if driver == "reconciler" {
						w.Pass(second)
					}
					first, err := do(second)
					if err != nil || first.Answer.Code >= 300 {
						t.Fatalf("%d %s, %v", first.Answer.Code, first.Answer.Body, err)
					}
					again, err := do(second)
					if err != nil || !again.Replayed {
						t.Fatalf("replayed %v, %v", again.Replayed, err)
					}
					if err := world.Same(first.Answer, again.Answer); err != nil {
						t.Error(err)
					}
					stats := w.Sim.Stats()
					if kind == "refund" && stats.Refunds != 1 ||
						kind == "capture" && stats.CapturesExecuted != 1 {
						t.Errorf("at the provider: %+v", stats)
					}
					event, column := "charge.refunded", "amount_refunded"
					if kind == "capture" {
						event, column = "charge.captured", "amount_captured"
					}
					if n := w.Count(`SELECT count(*) FROM outbox WHERE type = $1`, event); n != 1 {
						t.Errorf("%d events %s", n, event)
					}
					if n := w.Count(`SELECT ` + column + ` FROM charges`); n != 700 {
						t.Errorf("%s is %d", column, n)
					}
					if n := w.Count(`SELECT amount_refund_pending FROM charges`); n != 0 {
						t.Errorf("%d are still reserved", n)
					}
				})
			}
		}
	}
}

// 20 refunds of 30 on a charge of 100 over two instances: three are made, the rest are refused, and
// the provider's records agree with ours.
func TestRefundsNeverExceedTheCharge(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	if _, err := w.Sim.AddFault(
		stripesim.Rule{
			Match: stripesim.Match{Method: http.MethodPost, Path: "/v1/refunds"},
			Fault: stripesim.Fault{Type: stripesim.Delay, DelayMS: 200},
		},
	); err != nil {
		t.Fatal(err)
	}
	instances := []world.Instance{w.Start(), w.Start()}
	hundred := world.Twenty
	hundred.Amount = 100
	charge := instances[0].MustCharge("charge", hundred)
	var made, refused atomic.Int64
	var group sync.WaitGroup
	for n := range 20 {
		group.Go(func() {
			res, err := instances[n%2].Refund(fmt.Sprint("r", n), charge, 30)
			var no *problem.Error
			switch {
			case err == nil && res.Answer.Code == http.StatusCreated:
				made.Add(1)
			case errors.As(err, &no) && no.Code.Status() >= 400 && no.Code.Status() < 500 &&
				no.Name() != "":
				refused.Add(1)
			default:
				t.Errorf("%d %s, %v", res.Answer.Code, res.Answer.Body, err)
			}
		})
	}
	group.Wait()
	if made.Load() != 3 || refused.Load() != 17 {
		t.Errorf("%d made, %d refused", made.Load(), refused.Load())
	}
	if n := w.Count(`SELECT amount_refunded FROM charges`); n != 90 {
		t.Errorf("%d refunded", n)
	}
	if n := w.Sim.Stats().Refunds; n != 3 {
		t.Errorf("%d refunds at the provider", n)
	}
	if n := w.Count(`SELECT count(*) FROM idempotency_keys`); n != 4 {
		t.Errorf("%d keys: refusals have spent some", n)
	}
}

// The schema holds the sum whatever the code does: with its own check out, the CHECK still refuses.
func TestTheSchemaBoundsRefunds(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	charge := w.Start().MustCharge("charge", world.Twenty)
	for _, sql := range []string{
		`UPDATE charges SET amount_refund_pending = 2001 WHERE id = $1`,
		`UPDATE charges SET amount_refunded = 1500, amount_refund_pending = 501 WHERE id = $1`,
		`UPDATE charges SET amount_refund_pending = -1 WHERE id = $1`,
		`UPDATE charges SET amount_captured = 2001 WHERE id = $1`,
	} {
		if _, err := w.Pool.Exec(t.Context(), sql, charge); err == nil {
			t.Errorf("%s was taken", sql)
		}
	}
}

// A refund of unknown outcome keeps its amount reserved, whatever time passes; a definite refusal
// gives it back.
func TestReservedAmounts(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	charge := i.MustCharge("charge", world.Twenty)
	arm := func(f stripesim.Fault) {
		if _, err := w.Sim.AddFault(
			stripesim.Rule{
				Match: stripesim.Match{Method: http.MethodPost, Path: "/v1/refunds"}, Count: 1,
				Fault: f,
			},
		); err != nil {
			t.Fatal(err)
		}
	}
	arm(stripesim.Fault{Type: stripesim.DropAfter})
	_, err := i.Refund("lost", charge, 1500)
	world.WantUnknown(t, err)
	var no *problem.Error
	if _, err := i.Refund("more", charge, 600); !errors.As(err, &no) ||
		no.Code != problem.RefundPending {
		t.Errorf("%v", err)
	}
	w.Age(25 * time.Hour)
	if _, err := w.Sim.AddFault(
		stripesim.Rule{
			Match: stripesim.Match{Method: http.MethodGet},
			Fault: stripesim.Fault{Type: stripesim.StatusBefore, Status: 500},
		},
	); err != nil {
		t.Fatal(err)
	}
	w.Pass(i) // the provider cannot be asked
	if n := w.Count(`SELECT amount_refund_pending FROM charges`); n != 1500 {
		t.Errorf("%d reserved after a look-up that failed", n)
	}
	w.Sim.ClearFaults()
	w.Pass(i)
	if n := w.Count(
		`SELECT amount_refunded FROM charges WHERE amount_refund_pending = 0`,
	); n != 1500 {
		t.Errorf("%d refunded", n)
	}
	// What the provider refuses for certain is given back.
	arm(stripesim.Fault{
		Type: stripesim.StatusBefore, Status: 400, Store: true,
		Body: `{"error":{"type":"invalid_request_error","code":"charge_disputed","message":"disputed"}}`,
	})
	res, err := i.Refund("refused", charge, 500)
	if err != nil || res.Answer.Code != http.StatusBadRequest {
		t.Fatalf("got %d %s, %v, want 400", res.Answer.Code, res.Answer.Body, err)
	}
	if n := w.Count(`SELECT amount_refund_pending FROM charges`); n != 0 {
		t.Errorf("%d are still reserved", n)
	}
	if n := w.Count(`SELECT count(*) FROM refunds WHERE status = 'failed'`); n != 1 {
		t.Errorf("%d refunds say that they failed", n)
	}
	if res, err := i.Refund("rest", charge, 0); err != nil ||
		res.Answer.Code != http.StatusCreated {
		t.Fatalf("got %v, want 201", err)
	}
	if n := w.Count(`SELECT amount_refunded FROM charges`); n != 2000 {
		t.Errorf("%d refunded", n)
	}
	// The key of the refund that used up the charge replays; it is not told that nothing is left.
	if res, err := i.Refund("rest", charge, 0); err != nil || !res.Replayed {
		t.Errorf("replayed %v, %v", res.Replayed, err)
	}
	if _, err := i.Refund("again", charge, 0); !errors.As(err, &no) ||
		no.Code != problem.ChargeAlreadyRefunded {
		t.Errorf("%v", err)
	}
}

// What cannot be captured or refunded is told clearly, and spends no key.
func TestRefusalsByState(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	held := i.MustCharge("held", world.Authorised)
	w.ChargeFault(1, stripesim.Fault{Type: stripesim.DropAfter})
	_, err := i.Charge("pending")
	world.WantUnknown(t, err)
	var pending string
	if err := w.Pool.QueryRow(
		t.Context(), `SELECT id FROM charges WHERE status = 'pending'`,
	).Scan(&pending); err != nil {
		t.Fatal(err)
	}
	want := func(err error, status int, name string) {
		t.Helper()
		var no *problem.Error
		if !errors.As(err, &no) || no.Code.Status() != status || no.Name() != name {
			t.Errorf("%v, want %d %s", err, status, name)
		}
	}
	_, err = i.Refund("1", held, 1)
	want(err, 400, "charge_not_captured")
	_, err = i.Refund("1", pending, 0)
	want(err, 409, "charge_pending")
	_, err = i.Capture("1", pending, 0)
	want(err, 409, "charge_pending")
	_, err = i.Refund("1", "ch_none", 0)
	want(err, 404, "resource_missing")
	_, err = i.Capture("1", held, 2001)
	want(err, 400, "amount_too_large")
	if res, err := i.Capture("1", held, 1500); err != nil || res.Answer.Code != http.StatusOK {
		t.Fatalf("got %d, %v, want 200", res.Answer.Code, err)
	}
	_, err = i.Capture("2", held, 0)
	want(err, 400, "charge_already_captured")
	_, err = i.Refund("2", held, 1501)
	want(err, 400, "amount_too_large")
	w.Exec(`INSERT INTO disputes (id, account_id, charge_id, status, is_open, reason, amount, currency, refundable, has_evidence,
			past_due, submissions, livemode, provider_id, created_at)
		SELECT 'dp_1', account_id, id, 'needs_response', true, 'general', 5, 'usd', false, false, false, 0, false, 'dp_2', created_at
		FROM charges WHERE id = $1`, held)
	_, err = i.Refund("2", held, 0)
	want(err, 400, "charge_disputed")
}
