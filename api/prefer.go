package api

import (
	"strconv"
	"strings"
	"time"
)

// waitMax is the longest wait that a client may ask for, in seconds: within the timeouts that
// proxies usually have.
const waitMax = 30

// preferredWait reads `wait=N` of the Prefer header (RFC 7240), which may have several lines and
// preferences; the first of a name counts. What cannot be read is ignored, as preferences are.
func preferredWait(lines []string) (wait time.Duration, asked bool) {
	for _, line := range lines {
		for rest := line; rest != ""; {
			var preference string
			preference, rest = cutUnquoted(rest, ',')
			preference, _ = cutUnquoted(preference, ';') // parameters mean nothing to wait
			name, val, _ := strings.Cut(preference, "=")
			if lowerASCII(strings.Trim(name, " \t")) != "wait" {
				continue
			}
			n, ok := waitSeconds(strings.Trim(val, " \t"))
			if !ok {
				return 0, false
			}
			return time.Duration(n) * time.Second, true
		}
	}
	return 0, false
}

// cutUnquoted is strings.Cut, ignoring separators within quotes.
func cutUnquoted(s string, sep byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quoted:
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == sep && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

func waitSeconds(s string) (int, bool) {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	if s == "" {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int(s[i]-'0'), waitMax)
	}
	return n, true
}

func appliedWait(d time.Duration) string { return "wait=" + strconv.Itoa(int(d/time.Second)) }
