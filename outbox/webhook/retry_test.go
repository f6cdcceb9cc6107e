package webhook

import (
	"net/http"
	"testing"
	"time"
)

// A date is one by the endpoint's clock, as its answer tells it, whatever ours says.
func TestRetryAfter(t *testing.T) {
	now := time.Date(1994, 11, 6, 8, 49, 0, 0, time.UTC)
	const at = "Sun, 06 Nov 1994 08:49:37 GMT"
	for name, c := range map[string]struct {
		header http.Header
		want   time.Duration
	}{
		"seconds":              {http.Header{"Retry-After": {"7"}}, 7 * time.Second},
		"a date":               {http.Header{"Retry-After": {at}}, 37 * time.Second},
		"by a clock that lags": {http.Header{"Retry-After": {at}, "Date": {"Sun, 06 Nov 1994 07:49:07 GMT"}}, time.Hour + 30*time.Second},
		"by a clock ahead":     {http.Header{"Retry-After": {at}, "Date": {"Sun, 06 Nov 1994 09:49:07 GMT"}}, 0},
		"nonsense":             {http.Header{"Retry-After": {"soon"}}, 0},
		"none":                 {nil, 0},
	} {
		if got := retryAfter(c.header, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
