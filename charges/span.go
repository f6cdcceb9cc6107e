package charges

import "time"

// place is where something stands in a list, which is ordered by time and, within a moment, by id. With an empty id it is the
// place before everything of its moment.
type place struct {
	at time.Time
	id string
}

func (p place) before(q place) bool {
	if p.at.Equal(q.at) {
		return p.id < q.id
	}
	return p.at.Before(q.at)
}

// span is what lies between two places, neither of them included.
type span struct{ above, below place }

// wholeTime is wider than the years that an API's times can name.
var wholeTime = span{above: place{at: time.Unix(0, 0)}, below: place{at: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}}

// startAbove and startBelow narrow a span to what is beyond a cursor.

func (s *span) startAbove(p place) {
	if s.above.before(p) {
		s.above = p
	}
}

func (s *span) startBelow(p place) {
	if p.before(s.below) {
		s.below = p
	}
}
