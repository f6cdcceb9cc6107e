package stripe

import (
	"context"
	"hash/maphash"
	"slices"

	"paidonce/provider"
)

// knownMost is how many of our objects are remembered, at least, and twice as many at most: a
// burst of an outage, or what 1,000 charges a second come to in a quarter of a minute. Of each it
// is a hundred bytes.
const knownMost = 16_384

// known remembers which objects of a list carry which tags, whoever they were read for: the pages
// that one look-up reads have what thousands after it will look for. The mutex of its searches
// guards it.
type known struct {
	now, before map[uint64][]string // ids, by the hash of the tags
}

// note remembers an object.
func (k *known) note(hashed uint64, id string) {
	if slices.Contains(k.now[hashed], id) {
		return
	}
	if k.now == nil || len(k.now) >= knownMost {
		k.now, k.before = map[uint64][]string{}, k.now
	}
	k.now[hashed] = append(k.now[hashed], id)
}

// only gives the one object that is known of these tags, "" if there is none or several.
func (k *known) only(hashed uint64) string {
	ids := slices.Concat(k.now[hashed], k.before[hashed])
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) != 1 {
		return ""
	}
	return ids[0]
}

var tagSeed = maphash.MakeSeed()

func hashOf(t provider.Tags) uint64 { return maphash.Comparable(tagSeed, t) }

// readKnown reads the object that an earlier look-up has passed, as it is now: one read, where the
// list is many. nil: there is none, or it is not to be had in this way, which says nothing.
func (q *searches[F, T]) readKnown(ctx context.Context, l provider.Lookup) *T {
	q.mu.Lock()
	id := q.known.only(hashOf(l.Tags))
	q.mu.Unlock()
	if id == "" {
		return nil
	}
	if l.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.Within/2)
		defer cancel()
	}
	got, err := q.get(ctx, id)
	if err != nil || got == nil || q.tags(got) != l.Tags {
		return nil
	}
	return got
}
