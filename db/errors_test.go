package db_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"paidonce/db"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]db.Failure{
		&pgconn.PgError{Code: "40001"}: db.Rerun,
		&pgconn.PgError{Code: "40P01"}: db.Rerun,
		&pgconn.PgError{Code: "23505"}: db.Permanent,
		&pgconn.PgError{Code: "22021"}: db.Permanent,
		&pgconn.PgError{Code: "42703"}: db.Permanent,
		&pgconn.PgError{Code: "P0001"}: db.Permanent,
		&pgconn.PgError{Code: "57P01"}: db.Unreachable,
		&pgconn.PgError{Code: "25P03"}: db.Unreachable,
		&pgconn.PgError{Code: "53300"}: db.Unreachable,
		&pgconn.PgError{Code: "25006"}: db.Unreachable,
		&pgconn.PgError{Code: "55P03"}: db.Unreachable,
		pgx.ErrNoRows:                  db.Permanent,
		io.ErrUnexpectedEOF:            db.Unreachable,
		context.DeadlineExceeded:       db.Unreachable,
	} {
		if got := db.Classify(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

// Only what one row's data cause, and will cause again, is a person's to look at.
func TestByData(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		&pgconn.PgError{Code: "23505"}:                    true,
		&pgconn.PgError{Code: "23514"}:                    true,
		&pgconn.PgError{Code: "22021"}:                    true,
		&pgconn.PgError{Code: "44000"}:                    true,
		&pgconn.PgError{Code: "23502"}:                    false, // a column that an older binary does not know
		&pgconn.PgError{Code: "42703"}:                    false,
		&pgconn.PgError{Code: "42501"}:                    false, // a grant is missing
		&pgconn.PgError{Code: "0A000"}:                    false,
		&pgconn.PgError{Code: "P0001"}:                    false,
		&pgconn.PgError{Code: "XX000"}:                    false,
		&pgconn.PgError{Code: "40001"}:                    false,
		&pgconn.PgError{Code: "57P01"}:                    false,
		errors.Join(db.ErrUnavailable, pgx.ErrNoRows):     false,
		db.Final(db.ErrCommitUnknown):                     false,
		db.Final(errors.New("settled already")):           true,
		fmt.Errorf("the charge's row: %w", pgx.ErrNoRows): true,
		io.ErrUnexpectedEOF:                               false,
	} {
		if got := db.ByData(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

// Real conflicts: two serializable transactions that read what the other writes. Retry runs the loser again, whole.
func TestRetryReRunsRealSerializationFailures(t *testing.T) {
	t.Parallel()
	pool := open(t)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE seats (id int, taken bool); INSERT INTO seats VALUES (1, false), (2, false)`); err != nil {
		t.Fatal(err)
	}
	meet := make(chan struct{})
	tries := [2]int{}
	takeOne := func(me int, see, take int) error {
		return db.Retry(t.Context(), func(ctx context.Context) error {
			tries[me]++
			return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
				var other bool
				if err := tx.QueryRow(ctx, `SELECT taken FROM seats WHERE id = $1`, see).Scan(&other); err != nil {
					return err
				}
				if tries[me] == 1 { // both have read before either writes
					select {
					case meet <- struct{}{}:
					case <-meet:
					}
				}
				_, err := tx.Exec(ctx, `UPDATE seats SET taken = NOT $2::bool WHERE id = $1`, take, other)
				return err
			})
		})
	}
	errs := make(chan error, 2)
	go func() { errs <- takeOne(0, 1, 2) }()
	go func() { errs <- takeOne(1, 2, 1) }()
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Fatal(err)
	}
	if tries[0]+tries[1] < 3 {
		t.Errorf("tries %v: no conflict took place, so nothing was tested", tries)
	}
	var taken int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM seats WHERE taken`).Scan(&taken); err != nil || taken != 1 {
		t.Errorf("%d seats taken, %v", taken, err)
	}
}

// Constraint errors are answers, not accidents: they are not tried again (trap 72's sibling).
func TestRetryLeavesConstraintErrorsAlone(t *testing.T) {
	t.Parallel()
	pool := open(t)
	tries := 0
	err := db.Retry(t.Context(), func(ctx context.Context) error {
		tries++
		_, err := pool.Exec(ctx, `INSERT INTO accounts (id, name) VALUES ('acct_1', '')`)
		return err
	})
	if err == nil || tries != 1 {
		t.Errorf("tries %d, %v", tries, err)
	}
}

// A database that is away is told so within the budget, not for ever.
func TestRetryGivesUpOnADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	pool, err := db.Open("postgres://nobody@127.0.0.1:1/none", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	tries := 0
	err = db.Retry(t.Context(), func(ctx context.Context) error { tries++; return pool.Ping(ctx) })
	if !errors.Is(err, db.ErrUnavailable) || tries < 2 {
		t.Errorf("tries %d, %v", tries, err)
	}
}
