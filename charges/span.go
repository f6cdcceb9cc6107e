package charges

import (
	"slices"
	"time"
)

// position is a position in a list, which is ordered by time and, at the same time, by id. With an
// empty id it comes before everything of its time.
type position struct {
	at time.Time
	id string
}

func (p position) before(q position) bool {
	if p.at.Equal(q.at) {
		return p.id < q.id
	}
	return p.at.Before(q.at)
}

// span is the part of a list between two positions, both excluded.
type span struct{ above, below position }

// wholeTime is wider than the years that an API's times can name.
var wholeTime = span{
	above: position{at: time.Unix(0, 0)},
	below: position{at: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
}

// spanOf returns the part of a list that was created in [from, before); nil is no bound.
func spanOf(from, before *time.Time) span {
	s := wholeTime
	if from != nil {
		s.above.at = *from
	}
	if before != nil {
		s.below.at = *before
	}
	return s
}

// startAbove and startBelow narrow a span to what is beyond a cursor.

func (s *span) startAbove(p position) {
	if s.above.before(p) {
		s.above = p
	}
}

func (s *span) startBelow(p position) {
	if p.before(s.below) {
		s.below = p
	}
}

// pageOf returns what a page of a list shows, newest first, and whether there are more rows: the
// statements read one more than the limit. backwards: they were read from the other end.
func pageOf[R, T any](
	rows []R, limit int, backwards bool, show func(R) (T, error),
) (shown []T, more bool, err error) {
	more = len(rows) > limit
	shown = make([]T, 0, min(len(rows), limit))
	for _, row := range rows[:min(len(rows), limit)] {
		object, err := show(row)
		if err != nil {
			return nil, false, err
		}
		shown = append(shown, object)
	}
	if backwards {
		slices.Reverse(shown)
	}
	return shown, more, nil
}
