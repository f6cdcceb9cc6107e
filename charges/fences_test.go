package charges_test

import (
	"testing"

	"paidonce/db"
	"paidonce/internal/world"
)

// A capture belongs to the operation that reserved it. The domain looks first, under the row's
// lock; the statements hold whatever it may get wrong.
func TestACaptureBelongsToOneOperation(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	id := w.Start().MustCharge("charge", world.Authorised)
	q, account := db.New(), w.Key.AccountID
	reserve := func(operation string) int64 {
		n, err := q.ChargeReserveCapture(t.Context(), w.Pool, db.ChargeReserveCaptureParams{
			OperationID: operation, AccountID: account, ID: id,
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	capture := func(operation string) bool {
		_, done, err := db.Found(q.ChargeCapture(t.Context(), w.Pool, db.ChargeCaptureParams{
			AmountCaptured: 2000, AccountID: account, ID: id, OperationID: operation,
		}))
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	if reserve("op_a") != 1 || reserve("op_b") != 0 {
		t.Error("not the first, or not only the first, reserves a capture")
	}
	if capture("op_b") || !capture("op_a") || capture("op_a") {
		t.Error("whoever reserved a capture makes it, and once")
	}
}

// A server that has not heard of a fork claims nothing all the same: the claim's own statement
// looks.
func TestNothingIsClaimedInAForkedHistory(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	i := w.Start()
	i.MustCharge("before", world.Twenty)
	if _, err := w.Pool.Exec(t.Context(),
		`UPDATE installation SET forked_at = clock_timestamp()`); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Charge("after"); err == nil {
		t.Error("a charge was made")
	}
	if n := w.Count(`SELECT count(*) FROM idempotency_keys`); n != 1 {
		t.Errorf("%d keys are claimed", n)
	}
}
