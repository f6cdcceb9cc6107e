package recovery_test

import (
	"log/slog"
	"testing"

	"paidonce/charges"
)

// What a server remembers having claimed has a row for ever: else it would take its absence for a database
// that forgot. A capture that was proven never made leaves none.
func TestClaimedHasARow(t *testing.T) {
	w := newWorld(t)
	in := w.start(w.pool, w.psp)
	charge := in.made(w, "k", authorised)
	if res, err := in.capture(w, "c", charge, 2000); err != nil || res.Answer.Code >= 300 {
		t.Fatalf("%s, %v", res.Answer.Body, err)
	}
	if res, err := in.refund(w, "r", charge, 500); err != nil || res.Answer.Code >= 300 {
		t.Fatalf("%s, %v", res.Answer.Body, err)
	}
	ids := charges.NewRebuilder(in.store, w.psp, charges.Config{}, slog.New(slog.DiscardHandler)).Claimed()
	rows := w.count("SELECT count(*) FROM charges WHERE operation_id = ANY($1)", ids) +
		w.count("SELECT count(*) FROM refunds WHERE operation_id = ANY($1)", ids)
	if len(ids) != 2 || rows != 2 {
		t.Errorf("%d rows for %v", rows, ids)
	}
}
