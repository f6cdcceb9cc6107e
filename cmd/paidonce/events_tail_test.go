package main

import (
	"net/http"
	"testing"
	"time"
)

// Pauses grow to a most, and are never shorter than the server asks for.
func TestTailPauses(t *testing.T) {
	before := time.Duration(0)
	for failures := range 100 {
		pause := tailPauseAfter(failures, 0)
		if pause < before || pause < tailPause || pause > tailPauseMost {
			t.Errorf("after %d failures: %v, before it: %v", failures, pause, before)
		}
		before = pause
		if asked := tailPauseAfter(failures, 5*time.Minute); asked != 5*time.Minute {
			t.Errorf("after %d failures: %v, though the server asks for 5m", failures, asked)
		}
	}
	if before != tailPauseMost || tailPauseAfter(1, 0) <= tailPauseAfter(0, 0) {
		t.Errorf("at last %v", before)
	}
}

func TestRetryAfter(t *testing.T) {
	for asked, want := range map[string]time.Duration{
		"": 0, "2": 2 * time.Second, "0": 0, "-1": 0, "1.5": 0, "soon": 0, "3600": time.Hour, "4294967295": time.Hour, "99999999999999999999": 0,
		"Sun, 06 Nov 1994 08:49:37 GMT": 0, "Fri, 31 Dec 9999 23:59:59 GMT": time.Hour,
	} {
		if got := retryAfter(http.Header{"Retry-After": {asked}}); got != want {
			t.Errorf("%q: %v, want %v", asked, got, want)
		}
	}
	// A date is one by the server's clock, whatever ours says.
	theirs := http.Header{"Retry-After": {"Sun, 06 Nov 1994 08:49:37 GMT"}, "Date": {"Sun, 06 Nov 1994 08:49:07 GMT"}}
	if got := retryAfter(theirs); got != 30*time.Second {
		t.Errorf("by the server's clock: %v", got)
	}
}
