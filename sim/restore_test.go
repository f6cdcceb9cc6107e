package sim_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"paidonce/charges"
	"paidonce/db"
	"paidonce/history"
	"paidonce/internal/world"
)

// copyOrPutBack: somebody copies the database, and, some time after, it is put back to that moment:
// all commits since are forgotten. No server runs meanwhile, and nothing is on its way to the
// provider any more. Before the next server claims anything, what was forgotten is rebuilt from the
// provider's records.
func (r *run) copyOrPutBack() {
	if !r.hasCopy {
		r.logf("the database is copied")
		for _, table := range laneTables {
			r.must(r.lane.exec("DROP TABLE IF EXISTS sim.copy_of_" + table))
			r.must(
				r.lane.exec(
					fmt.Sprintf("CREATE TABLE sim.copy_of_%s AS TABLE public.%s", table, table),
				),
			)
		}
		r.hasCopy = true
		return
	}
	r.logf("the database is put back")
	r.counts.add("databases put back")
	r.hasCopy = false
	dead := len(r.live)
	for len(r.live) > 0 {
		r.kill(r.live[0])
	}
	r.deliver(0)
	r.noteSettled()
	for _, table := range laneTables {
		r.must(r.lane.exec("DELETE FROM " + table))
		r.must(
			r.lane.exec(
				fmt.Sprintf(
					"INSERT INTO %s OVERRIDING SYSTEM VALUE SELECT * FROM sim.copy_of_%s", table,
					table,
				),
			),
		)
	}
	if !r.mutation.forgets {
		r.rebuild()
	}
	for range dead {
		r.startInstance()
	}
}

// noteSettled notes what the database is about to forget: when each operation was settled first.
func (r *run) noteSettled() {
	r.must(r.lane.query(`SELECT operation_id, settled_at FROM charges WHERE settled_at IS NOT NULL`, func(row interface{ Scan(...any) error }) error {
		var id string
		var at time.Time
		if err := row.Scan(&id, &at); err != nil {
			return err
		}
		if op := r.ops[id]; op != nil && op.settled.IsZero() {
			op.settled = at
		}
		return nil
	}))
}

// restoringPool is the database as whoever rebuilds sees it: outside the bubble, and with the run's
// mutation in what takes several statements.
type restoringPool struct {
	db.Pool
	change func(sql string) string
}

func (p restoringPool) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	tx, err := p.Pool.BeginTx(ctx, options)
	return restoringTx{tx, p.change}, err
}

type restoringTx struct {
	pgx.Tx
	change func(sql string) string
}

func (t restoringTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return t.Tx.Query(ctx, t.change(sql), args...)
}

func (t restoringTx) Exec(
	ctx context.Context, sql string, args ...any,
) (pgconn.CommandTag, error) {
	return t.Tx.Exec(ctx, t.change(sql), args...)
}

func (r *run) rebuild() {
	var counts history.Counts
	var err error
	r.lane.carry(func() {
		store := charges.NewStore(
			charges.StoreConfig{Pool: restoringPool{r.lane.pool, r.change}, KeyTTL: 24 * time.Hour},
		)
		b := charges.NewRebuilder(
			store, r.lane.psp, charges.Config{Installation: "sim"}, world.Quiet,
		)
		var since time.Time
		if since, err = b.RebuildFrom(context.Background()); err != nil {
			return
		}
		err = b.Rebuild(
			context.Background(), since,
			func(_ context.Context, c history.Counts) error { counts.Charges += c.Charges; return nil },
		)
	})
	r.must(err)
	r.logf("%d charges are rebuilt", counts.Charges)
	r.counts.addN(counts.Charges, "charges rebuilt")
}
