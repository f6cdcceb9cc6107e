package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"paidonce/outbox"
	"paidonce/problem"
)

// addAt adds an event with that created, in Unix seconds, which was written at the same time and
// committed as the n-th.
func (w *world) addAt(n int, kind string, created int64) string {
	w.T.Helper()
	id := fmt.Sprintf("evt_%026d", n)
	w.Exec(`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload, created_at, position)
		VALUES ($1, $2, $3, $1, 'ch_1', convert_to('{"id":"' || $1::text || '","created":' || $4::bigint || '}', 'UTF8'), to_timestamp($4::bigint), $5)`, id, account, kind, created, n+1)
	return id
}

func listed(t *testing.T, w *world, f outbox.Filter) (ids []string, more bool) {
	t.Helper()
	page, err := w.store.List(context.Background(), account, f)
	if err != nil {
		t.Fatalf("%+v: %v", f, err)
	}
	for _, e := range page.Events {
		ids = append(ids, e.ID)
	}
	return ids, page.HasMore
}

// Whatever the filter and the order, a list is what a walk over all events finds.
func TestEventListsAreWhatAWalkFinds(t *testing.T) {
	w := newWorld(t)
	kinds := []string{"charge.succeeded", "charge.failed", "refund.created", "charge.dispute.created"}
	const second = 1_764_403_200
	type event struct {
		id, kind string
		created  int64
	}
	var all []event
	for n := range 60 {
		// an hour between them, and every seventh later than its neighbours by a minute
		e := event{kind: kinds[n*n%4], created: second + int64(n/4)*3600 + int64(n%7/6)*60}
		e.id = w.addAt(n, e.kind, e.created)
		all = append(all, e)
	}
	at := func(s int64) *int64 { return &s }
	for _, f := range []outbox.Filter{
		{}, {Types: []string{"charge.failed"}}, {Types: []string{"charge.*"}}, {Types: []string{"*.created"}}, {Types: []string{"*"}},
		{Types: []string{"refund.created", "charge.d*"}},
		{CreatedFrom: at(second + 3600)}, {CreatedBefore: at(second + 3600)}, {CreatedFrom: at(second + 3*3600), CreatedBefore: at(second + 3*3600 + 1)},
		{CreatedFrom: at(second + 2*3600 + 60), CreatedBefore: at(second + 9*3600), Types: []string{"charge.*"}},
		{CreatedFrom: at(second + 1000*3600)}, {CreatedBefore: at(0)}, {CreatedBefore: at(1 << 62), CreatedFrom: at(-1 << 62)},
	} {
		for _, newest := range []bool{false, true} {
			var want []string
			for _, e := range all {
				wanted := len(f.Types) == 0 || slices.Contains(f.Types, "*") || slices.Contains(f.Types, e.kind) ||
					slices.Contains(f.Types, "charge.*") && e.kind[:7] == "charge." || slices.Contains(f.Types, "charge.d*") && e.kind == kinds[3] ||
					slices.Contains(f.Types, "*.created") && e.kind[len(e.kind)-8:] == ".created"
				if wanted && (f.CreatedFrom == nil || e.created >= *f.CreatedFrom) && (f.CreatedBefore == nil || e.created < *f.CreatedBefore) {
					want = append(want, e.id)
				}
			}
			if newest {
				slices.Reverse(want)
			}
			f.NewestFirst = newest
			pages(t, w, f, want)
		}
	}
}

// pages reads a list in pages from the beginning, and from its last event back.
func pages(t *testing.T, w *world, f outbox.Filter, want []string) {
	t.Helper()
	f.Limit = 7
	var got []string
	for more := true; more; {
		var ids []string
		ids, more = listed(t, w, f)
		if len(ids) == 0 {
			break
		}
		got, f.StartingAfter = append(got, ids...), ids[len(ids)-1]
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v: got %d events, want %d:\n%v", f, len(got), len(want), got)
	}
	if len(want) == 0 {
		return
	}
	got, f.StartingAfter, f.EndingBefore = want[len(want)-1:], "", want[len(want)-1]
	for more := true; more; {
		var ids []string
		ids, more = listed(t, w, f)
		if len(ids) == 0 {
			break
		}
		got, f.EndingBefore = append(slices.Clone(ids), got...), ids[0]
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, from its end: got %d events, want %d:\n%v", f, len(got), len(want), got)
	}
}

func TestTypesThatDoNotExistAreRefused(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []string{"charge", "customer.created", "customer.*", "charge.[a-z]*", "charge.?ailed", `charge.\failed`, "charge.*x", ""} {
		_, err := w.store.List(t.Context(), account, outbox.Filter{Types: []string{"charge.failed", kind}, TypesParam: "types", Limit: 1})
		var p *problem.Error
		if !errors.As(err, &p) || p.Param != "types" || p.Code != problem.ParameterInvalid {
			t.Errorf("%q: %v", kind, err)
		}
	}
	if _, err := w.store.List(t.Context(), account, outbox.Filter{EndingBefore: "evt_nowhere", Limit: 1}); !errors.Is(err, outbox.ErrNotFound) {
		t.Errorf("a cursor that names nothing: %v", err)
	}
}
