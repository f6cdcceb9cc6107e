package recovery_test

import (
	"context"
	"fmt"
	"time"

	"paidonce/charges"
	"paidonce/history"
)

// copyOrPutBack: somebody copies the database, and, some time after, it is put back to that moment: all
// commits since are forgotten. No server runs meanwhile, and nothing is on its way to the provider any
// more. Before the next server claims anything, what was forgotten is rebuilt from the provider's books.
func (r *simRun) copyOrPutBack() {
	if !r.copied {
		r.say("the database is copied")
		for _, table := range simTables {
			r.must(r.lane.exec("DROP TABLE IF EXISTS sim.copy_of_" + table))
			r.must(r.lane.exec(fmt.Sprintf("CREATE TABLE sim.copy_of_%s AS TABLE public.%s", table, table)))
		}
		r.copied = true
		return
	}
	r.say("the database is put back")
	r.counts.add("databases put back")
	r.copied = false
	dead := len(r.live)
	for len(r.live) > 0 {
		r.kill(r.live[0])
	}
	r.deliver(0)
	for _, table := range simTables {
		r.must(r.lane.exec("DELETE FROM " + table))
		r.must(r.lane.exec(fmt.Sprintf("INSERT INTO %s OVERRIDING SYSTEM VALUE SELECT * FROM sim.copy_of_%s", table, table)))
	}
	if !r.mutation.forgets {
		r.rebuild()
	}
	for range dead {
		r.birth()
	}
}

func (r *simRun) rebuild() {
	var counts history.Counts
	var err error
	r.lane.carry(func() {
		b := charges.NewRebuilder(charges.NewStore(r.lane.pool, 24*time.Hour), r.lane.psp, charges.Config{Installation: "sim"}, quiet)
		var since time.Time
		if since, err = b.Since(context.Background()); err != nil {
			return
		}
		err = b.Rebuild(context.Background(), since, func(_ context.Context, c history.Counts) error { counts.Charges += c.Charges; return nil })
	})
	r.must(err)
	r.say("%d charges are rebuilt", counts.Charges)
	r.counts.addN(counts.Charges, "charges rebuilt")
}
