package db

import (
	"strings"
	"testing"
)

// No PostgreSQL 13 is at hand: what it says of itself is.
func TestJudgeServer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		version          int
		number, encoding string
		says             string
	}{
		{130022, "13.22 (Debian 13.22-1)", "UTF8", "PostgreSQL 13.22 (Debian 13.22-1): 14 or newer"},
		{140000, "14.0", "UTF8", ""},
		{180001, "18.1", "UTF8", ""},
		{150018, "15.18", "LATIN1", "encoding LATIN1"},
	} {
		err := judgeServer(tc.version, tc.number, tc.encoding)
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%+v: got %v", tc, err)
		}
	}
}
