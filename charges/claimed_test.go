package charges_test

import (
	"log/slog"
	"testing"

	"paidonce/charges"
	"paidonce/internal/world"
)

// What a server remembers having claimed has a row forever: else it would take its absence for a
// database that forgot. A capture that was proven never made leaves none.
func TestClaimedHasARow(t *testing.T) {
	w := world.New(t)
	in := w.StartWith(w.Pool, w.Provider)
	charge := in.MustCharge("k", world.Authorised)
	if res, err := in.Capture("c", charge, 2000); err != nil || res.Answer.Code >= 300 {
		t.Fatalf("%s, %v", res.Answer.Body, err)
	}
	if res, err := in.Refund("r", charge, 500); err != nil || res.Answer.Code >= 300 {
		t.Fatalf("%s, %v", res.Answer.Body, err)
	}
	ids := claimedBy(w, in)
	rows := w.Count("SELECT count(*) FROM charges WHERE operation_id = ANY($1)", ids) +
		w.Count("SELECT count(*) FROM refunds WHERE operation_id = ANY($1)", ids)
	if len(ids) != 2 || rows != 2 {
		t.Errorf("%d rows for %v", rows, ids)
	}
}

func claimedBy(w *world.World, in world.Instance) []string {
	return charges.NewRebuilder(
		in.Store, w.Provider, charges.Config{}, slog.New(slog.DiscardHandler),
	).Claimed()
}

// A claim is remembered when it is committed, not earlier: a server that looks meanwhile would take
// it for one that the database has forgotten, and hold all claims.
func TestClaimedIsCommitted(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	in := w.Start()
	first := made(w, in, "k", order("A"))
	before := len(claimedBy(w, in))
	w.Exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'not now'; END $$`)
	w.Exec(`CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON charges
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
	if res, err := in.CreateIntent("i", world.PayingIntent("pm_card_visa")); err == nil {
		t.Fatalf("the intent was made: %s", res.Answer.Body)
	}
	if res, err := charge(w, in, "d", besides("A", first)); err == nil {
		t.Fatalf("the duplicate was made: %s", res.Answer.Body)
	}
	if ids := claimedBy(w, in); len(ids) != before {
		t.Errorf("remembered are %v", ids)
	}
}
