package stripesim

import "sort"

// timeline keeps objects by position, oldest first. Appending is the usual case; a clock that was
// set back inserts.
type timeline[T interface{ at() position }] struct{ items []T }

func (t *timeline[T]) insert(item T) {
	p := item.at()
	if n := len(t.items); n == 0 || t.items[n-1].at().before(p) {
		t.items = append(t.items, item)
		return
	}
	i := t.search(p)
	var zero T
	t.items = append(t.items, zero)
	copy(t.items[i+1:], t.items[i:])
	t.items[i] = item
}

// search gives the index of the first item that isn't before p.
func (t *timeline[T]) search(p position) int {
	return sort.Search(len(t.items), func(i int) bool { return !t.items[i].at().before(p) })
}

// window limits a page: created between from and to (both inside), beyond a cursor on either side.
type window struct {
	limit     int
	from, to  int64
	after     *position // strictly older than this one (starting_after)
	newerThan *position // strictly newer than this one (ending_before)
	keep      func(i int) bool
}

// page gives up to w.limit items newest first, and whether there are more in the direction of
// travel. It finds its bounds by binary search, so a page of a long list costs what the page costs.
func (t *timeline[T]) page(w window) (items []T, more bool) {
	lo := t.search(position{created: w.from, seq: -1})
	hi := t.search(position{created: w.to, seq: 1<<63 - 1})
	if w.after != nil {
		hi = min(hi, t.search(*w.after))
	}
	if w.newerThan != nil {
		lo = max(lo, t.search(*w.newerThan)+1)
		for i := lo; i < hi; i++ {
			if w.keep != nil && !w.keep(i) {
				continue
			}
			if len(items) == w.limit {
				more = true
				break
			}
			items = append(items, t.items[i])
		}
		for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
			items[i], items[j] = items[j], items[i]
		}
		return items, more
	}
	for i := hi - 1; i >= lo; i-- {
		if w.keep != nil && !w.keep(i) {
			continue
		}
		if len(items) == w.limit {
			return items, true
		}
		items = append(items, t.items[i])
	}
	return items, false
}
