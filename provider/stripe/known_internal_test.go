package stripe

import (
	"fmt"
	"testing"
)

// What is remembered is bounded, the newest of it stays, and of several objects of the same tags
// none is taken: an operator decides.
func TestWhatIsKnownOfAList(t *testing.T) {
	t.Parallel()
	var k known
	if got := k.only(1); got != "" {
		t.Errorf("nothing is known, got %q", got)
	}
	for n := range uint64(3 * knownMost) {
		k.note(n, fmt.Sprint("ch_", n))
		k.note(n, fmt.Sprint("ch_", n))
	}
	if n := len(k.now) + len(k.before); n > 2*knownMost {
		t.Errorf("%d are remembered", n)
	}
	for n, want := range map[uint64]string{0: "", 3*knownMost - 1: fmt.Sprint("ch_", 3*knownMost-1), 2 * knownMost: fmt.Sprint("ch_", 2*knownMost)} {
		if got := k.only(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	k.note(3*knownMost-1, "ch_other")
	if got := k.only(3*knownMost - 1); got != "" {
		t.Errorf("two carry the tags, got %q", got)
	}
}
