package outbox

import (
	"context"
	"errors"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"paidonce/db"
	"paidonce/problem"
)

// Filter selects events of an account.
type Filter struct {
	// Types are names of types, or patterns in which * stands for any text; none: all.
	Types []string
	// TypesParam is what the request calls Types, for errors.
	TypesParam string
	// The events' own created, in Unix seconds, is in [CreatedFrom, CreatedBefore); nil: no bound.
	CreatedFrom, CreatedBefore *int64
	// StartingAfter is an event's id: the page begins with the event that follows it in the order
	// of reading.
	StartingAfter string
	// EndingBefore is an event's id: the page ends with the event before it in the order of
	// reading. Not together with StartingAfter.
	EndingBefore string
	// NewestFirst reads backwards. Events that come later are seen by reading forwards only.
	NewestFirst bool
	Limit       int // 1-100
}

// towardsNewest reports whether a page is read from its cursor, or from the first event, towards
// later events.
func (f Filter) towardsNewest() bool { return f.NewestFirst == (f.EndingBefore != "") }

// Page is a page of events in the order of reading: the order in which they became visible, or its
// reverse. HasMore reports whether there are more in the direction in which it was read.
type Page struct {
	Events  []Event
	HasMore bool
}

// writtenWithin is how far an event's place among the others may be from its time: how long after
// its created it was committed, and how far clocks were set meanwhile. A list by created looks at
// the events of so much more time at both ends; five minutes are many times a commit that waits for
// a standby, and few events.
const writtenWithin = 5 * time.Minute

// List returns a page of an account's events. A client that reads to the end, and later reads on
// from the last event that it has seen, misses none: a new event is always put after all that were
// ever listed, and a cursor behind which events were deleted is refused. Errors: [ErrNotFound] for
// such a cursor, or one that names no event of the account; [*problem.Error]; the database's.
func (s *Store) List(ctx context.Context, accountID string, f Filter) (Page, error) {
	types, err := f.matchingTypes()
	if err != nil {
		return Page{}, err
	}
	if err := s.NumberAll(ctx); err != nil {
		return Page{}, err
	}
	cursor, err := s.start(ctx, accountID, f, types)
	if err != nil {
		return Page{}, err
	}
	above, below, err := s.between(ctx, accountID, f, cursor)
	if err != nil {
		return Page{}, err
	}
	rows, err := s.listRows(ctx, accountID, f, types, above, below)
	if err != nil {
		return Page{}, err
	}
	if f.StartingAfter+f.EndingBefore != "" && f.towardsNewest() {
		// This is checked after the events were read. An event that is deleted meanwhile may be
		// reported as missed needlessly, but none is missed without an error.
		switch cleaned, err := s.cleanedUpTo(ctx, accountID, types); {
		case err != nil:
			return Page{}, err
		case cleaned > cursor:
			return Page{}, ErrNotFound
		}
	}
	page := Page{Events: make([]Event, 0, len(rows)), HasMore: len(rows) > f.Limit}
	for _, row := range rows[:min(len(rows), f.Limit)] {
		page.Events = append(page.Events, fromRow(row))
	}
	if f.EndingBefore != "" {
		slices.Reverse(page.Events)
	}
	return page, nil
}

// matchingTypes returns the types that match any of the names and patterns, each once; nil is all.
func (f Filter) matchingTypes() ([]string, error) {
	if len(f.Types) == 0 || slices.Contains(f.Types, "*") {
		return nil, nil
	}
	var types []string
	for _, pattern := range f.Types {
		before := len(types)
		for _, t := range Types {
			// A type has no slash, so * matches any part of it. The other signs of patterns are
			// no letters of a type.
			match, err := path.Match(pattern, t)
			if err == nil && match && !strings.ContainsAny(pattern, `?[\`) {
				types = append(types, t)
			}
		}
		if len(types) == before {
			return nil, problem.ParameterInvalid.Of(f.TypesParam,
				"there are no events of the type %s.", problem.Printable(pattern))
		}
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

// between returns the positions between which all events of a page are.
func (s *Store) between(
	ctx context.Context, accountID string, f Filter, cursor int64,
) (above, below int64, err error) {
	above, below = 0, math.MaxInt64
	if f.towardsNewest() {
		above = cursor
	} else {
		below = cursor
	}
	at := func(seconds int64, slack time.Duration) (int64, error) {
		seconds = min(max(seconds, 0), latest)
		return db.Read(ctx, s.pool, s.queries.EventPositionAt, db.EventPositionAtParams{
			AccountID: accountID, At: time.Unix(seconds, 0).Add(slack),
		})
	}
	if f.CreatedFrom != nil {
		place, err := at(*f.CreatedFrom, -writtenWithin)
		if err != nil {
			return 0, 0, err
		}
		above = max(above, place)
	}
	if f.CreatedBefore != nil {
		place, err := at(*f.CreatedBefore, writtenWithin)
		if err != nil {
			return 0, 0, err
		}
		below = min(below, place+1)
	}
	return above, below, nil
}

// latest is a second beyond all events that the database can still express: the year 9999.
const latest = 253370764800

// listRows runs the statement that fits the filter: each reads one index. It asks for one row more
// than the page has, which shows whether there are more.
func (s *Store) listRows(
	ctx context.Context, accountID string, f Filter, types []string, above, below int64,
) ([]db.Outbox, error) {
	ctx = db.OnlyReads(ctx)
	p := db.EventListOfTypesParams{
		AccountID: accountID, Types: types, Above: above, Below: below,
		Dated:       f.CreatedFrom != nil || f.CreatedBefore != nil,
		CreatedFrom: math.MinInt64, CreatedLast: math.MaxInt64,
		MaxRows: int32(f.Limit) + 1, //nolint:gosec // at most 100
	}
	if f.CreatedFrom != nil {
		p.CreatedFrom = *f.CreatedFrom
	}
	if f.CreatedBefore != nil {
		p.CreatedLast = *f.CreatedBefore - 1
	}
	all := db.EventListParams{
		AccountID: p.AccountID, Above: p.Above, Below: p.Below, Dated: p.Dated,
		CreatedFrom: p.CreatedFrom, CreatedLast: p.CreatedLast, MaxRows: p.MaxRows,
	}
	return db.Read0(ctx, s.pool, func(ctx context.Context, conn db.DBTX) ([]db.Outbox, error) {
		switch {
		case types == nil && f.towardsNewest():
			return s.queries.EventList(ctx, conn, all)
		case types == nil:
			return s.queries.EventListBefore(ctx, conn, db.EventListBeforeParams(all))
		case f.towardsNewest():
			return s.queries.EventListOfTypes(ctx, conn, p)
		}
		return s.queries.EventListOfTypesBefore(ctx, conn, db.EventListOfTypesBeforeParams(p))
	})
}

// start returns the position from which a page is read. The first page begins after the newest
// deleted event: those kept from before it have gaps between them.
func (s *Store) start(
	ctx context.Context, accountID string, f Filter, types []string,
) (int64, error) {
	switch {
	case f.StartingAfter+f.EndingBefore != "": // one of them at most
		return s.position(ctx, accountID, f.StartingAfter+f.EndingBefore)
	case !f.towardsNewest():
		return math.MaxInt64, nil
	}
	return s.cleanedUpTo(ctx, accountID, types)
}

func (s *Store) cleanedUpTo(
	ctx context.Context, accountID string, types []string,
) (int64, error) {
	return db.Read(ctx, s.pool, s.queries.EventsCleanedUpTo, db.EventsCleanedUpToParams{
		AccountID: accountID, Types: types,
	})
}

// position returns an event's position. An event that the database lost when it was restored came
// after all that it had at the moment of the backup, so its reader goes on from there: it may get
// events again, and misses none.
func (s *Store) position(ctx context.Context, accountID, id string) (int64, error) {
	e, err := s.Get(ctx, accountID, id)
	if errors.Is(err, ErrNotFound) && eventForm.MatchString(id) {
		at, readErr := db.Read(ctx, s.pool, s.queries.RecoveryOfCursor, cursorLife)
		if readErr != nil || at.Recoveries > 0 {
			return at.Position, readErr
		}
	}
	// It was committed while many others waited for their positions.
	if err == nil && e.Position == 0 {
		return 0, ErrNotFound
	}
	return e.Position, err
}
