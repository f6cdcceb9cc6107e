package db_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"paidonce/db"
)

// What may be executed twice is run again after a lost connection, anything else only after a
// conflict.
func TestReadRepeatAndWriteRunAgainWhatTheyMay(t *testing.T) {
	t.Parallel()
	conflict, lost := &pgconn.PgError{Code: "40001"}, io.ErrUnexpectedEOF
	type run = func(context.Context, db.DBTX, func(context.Context, db.DBTX, string) (int, error), string) (int, error)
	one := func(ctx context.Context, conn db.DBTX, query func(context.Context, db.DBTX, string) (int, error), params string) (int, error) {
		v, found, err := db.One(ctx, conn, query, params)
		if err == nil && !found {
			err = errors.New("a row that is there was not found")
		}
		return v, err
	}
	read0 := func(ctx context.Context, conn db.DBTX, query func(context.Context, db.DBTX, string) (int, error), params string) (int, error) {
		return db.Read0(ctx, conn, func(ctx context.Context, conn db.DBTX) (int, error) { return query(ctx, conn, params) })
	}
	for _, tc := range []struct {
		name  string
		run   run
		first error
		tries int
	}{
		{"Read, conflict", db.Read[string, int], conflict, 2},
		{"Read, lost", db.Read[string, int], lost, 2},
		{"Read0, lost", read0, lost, 2},
		{"One, lost", one, lost, 2},
		{"Repeat, conflict", db.Repeat[string, int], conflict, 2},
		{"Repeat, lost", db.Repeat[string, int], lost, 2},
		{"Write, conflict", db.Write[string, int], conflict, 2},
		{"Write, lost", db.Write[string, int], lost, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			v, err := tc.run(t.Context(), nil, func(_ context.Context, _ db.DBTX, params string) (int, error) {
				if tries++; tries == 1 {
					return 0, tc.first
				}
				return len(params), nil
			}, "abc")
			if tries != tc.tries {
				t.Errorf("%d tries, want %d", tries, tc.tries)
			}
			if tc.tries == 1 && !errors.Is(err, db.ErrUnavailable) || tc.tries == 2 && (err != nil || v != 3) {
				t.Errorf("got %d, %v, want db.ErrUnavailable", v, err)
			}
		})
	}
}

// A row that is not there is found out once, and is no error.
func TestOneReportsWhetherTheRowIsThere(t *testing.T) {
	t.Parallel()
	pool, q := open(t), db.New()
	if _, found, err := db.One(t.Context(), pool, q.AccountFind, "acct_nobody"); found || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
	p := db.AccountEnsureParams{ID: "acct_1", Name: "one"}
	if _, err := db.Repeat(t.Context(), pool, q.AccountEnsure, p); err != nil {
		t.Fatal(err)
	}
	if a, found, err := db.One(t.Context(), pool, q.AccountFind, "one"); !found || err != nil || a.ID != "acct_1" {
		t.Errorf("%+v, found %v, %v", a, found, err)
	}
	if _, found, err := db.Found(0, io.ErrUnexpectedEOF); found || err == nil {
		t.Errorf("an error was taken for an answer: found %v, %v", found, err)
	}
}

// A read costs no allocation beside those of its query: replays are reads.
func TestReadAllocatesNothing(t *testing.T) {
	var q answers
	if n := testing.AllocsPerRun(100, func() {
		if row, err := db.Read(context.Background(), nil, q.row, db.KeyReadParams{Key: "k"}); err != nil || row.Response == nil {
			t.Errorf("%v, %v", row, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// answers stands for queries.
type answers struct{}

type answer struct {
	Response []byte
	_        [200]byte
}

func (*answers) row(context.Context, db.DBTX, db.KeyReadParams) (answer, error) {
	return answer{Response: []byte{}}, nil
}

// Real conflicts: two serializable transactions that read what the other writes. Retry runs the
// loser again, whole.
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

// Constraint errors are answers, not accidents: they are not tried again.
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

// A database that is away is told so within the budget, not forever.
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
