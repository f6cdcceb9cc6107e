package db_test

import (
	"context"
	"testing"
	"time"

	"paidonce/db"
	"paidonce/internal/dbtest"
)

// A process that is stopped in the middle of a transaction must not hold its locks until somebody
// notices. The database ends such a transaction, and who comes back to find it ended runs it again.
func TestTxThatWaitsForItsClientIsEnded(t *testing.T) {
	t.Parallel()
	pool, err := db.Open(dbtest.New(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	ctx := t.Context()
	if _, err := pool.Exec(ctx, `CREATE TABLE t (n integer)`); err != nil {
		t.Fatal(err)
	}
	runs := 0
	err = db.Tx(ctx, pool, func(ctx context.Context, tx db.DBTX) error {
		runs++
		var limit string
		var backend int
		if err := tx.QueryRow(ctx, `SELECT current_setting('idle_in_transaction_session_timeout'), pg_backend_pid()`).Scan(&limit, &backend); err != nil {
			return err
		}
		if d, err := time.ParseDuration(limit); err != nil || d != db.TxIdleMax {
			t.Errorf("the limit is %s", limit)
		}
		if _, err := tx.Exec(ctx, `INSERT INTO t VALUES (1)`); err != nil || runs > 1 {
			return err
		}
		// ms: as if we had been stopped
		if _, err := tx.Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 1`); err != nil {
			return err
		}
		for gone := false; !gone; time.Sleep(5 * time.Millisecond) {
			if err := pool.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)`, backend).Scan(&gone); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `INSERT INTO t VALUES (1)`)
		return err
	})
	var n int
	if e := pool.QueryRow(ctx, `SELECT count(*) FROM t`).Scan(&n); e != nil || err != nil || runs != 2 || n != 1 {
		t.Errorf("%d runs left %d rows: %v %v", runs, n, err, e)
	}
	var limit string
	if err := pool.QueryRow(ctx, `SELECT current_setting('idle_in_transaction_session_timeout')`).Scan(&limit); err != nil || limit != "0" {
		t.Errorf("the limit outlives its transaction: %s, %v", limit, err)
	}
}
