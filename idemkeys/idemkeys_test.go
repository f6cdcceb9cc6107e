package idemkeys

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"paidonce/db"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", KeyMax)
	for _, c := range []struct {
		lines []string
		want  string
		err   error
	}{
		{nil, "", ErrKeyMissing},
		{[]string{"abc"}, "abc", nil},
		{[]string{`"abc"`}, "abc", nil}, // the quoted form names the same key
		{[]string{"  abc\t"}, "abc", nil},
		{[]string{`a"b`}, `a"b`, nil},
		{[]string{`"a\"b"`}, `a"b`, nil},
		{[]string{`"a\\b"`}, `a\b`, nil},
		{[]string{"ABC"}, "ABC", nil},
		{[]string{"a b"}, "a b", nil},
		{[]string{long}, long, nil},
		{[]string{`"` + long + `"`}, long, nil},
		{[]string{""}, "", ErrKeyInvalid},         // an empty key is not "no key"
		{[]string{"   "}, "", ErrKeyInvalid},      //
		{[]string{`"  "`}, "", ErrKeyInvalid},     //
		{[]string{`""`}, "", ErrKeyInvalid},       //
		{[]string{long + "k"}, "", ErrKeyInvalid}, // too long
		{[]string{"a", "a"}, "", ErrKeyInvalid},   // two headers
		{[]string{`"abc`}, "", ErrKeyInvalid},
		{[]string{`"abc"x`}, "", ErrKeyInvalid},
		{[]string{`"abc";p=1`}, "", ErrKeyInvalid},
		{[]string{`"a\nb"`}, "", ErrKeyInvalid},
		{[]string{`"`}, "", ErrKeyInvalid},
		{[]string{`"abc\`}, "", ErrKeyInvalid},
		{[]string{"a\x00b"}, "", ErrKeyInvalid},
		{[]string{"a\x7f"}, "", ErrKeyInvalid},
		{[]string{"a\xff"}, "", ErrKeyInvalid},
		{[]string{"käse"}, "", ErrKeyInvalid},
		{[]string{"a\tb"}, "", ErrKeyInvalid},
	} {
		got, err := ParseKey(c.lines)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("ParseKey(%q) = %q, %v; want %q, %v", c.lines, got, err, c.want, c.err)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{"abc", `"abc"`, `"a\"b"`, `"`, "\x00", strings.Repeat("x", 256)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		key, err := ParseKey([]string{s})
		if err != nil {
			return
		}
		if key == "" || len(key) > KeyMax ||
			strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("accepted %q as %q", s, key)
		}
	})
}

// Method, path, query and parameters all count, and no byte moves from one part to the next unseen.
func TestFingerprintCoversEveryPart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("ab?/")), 0, 3, -1), 4, 4)
		a, b := part.Draw(t, "a"), part.Draw(t, "b")
		fa := NewFingerprint(a[0], a[1], a[2], []byte(a[3]))
		fb := NewFingerprint(b[0], b[1], b[2], []byte(b[3]))
		version, hash := fa.Current()
		same, known := fb.Matches(version, hash)
		equal := a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3]
		if !known || same != equal {
			t.Fatalf("%q and %q: same %v", a, b, same)
		}
	})
}

// A stored hash is checked by the rule it was made by. These bytes must never change; a new rule
// gets a new number.
func TestFingerprintRulesAreKept(t *testing.T) {
	t.Parallel()
	f := NewFingerprint("POST", "/v1/charges", "", []byte(`{"amount":1}`))
	stored := []byte("\xb1\x6c\x13\x07\xb0\x29\xff\xfa")
	_, now := f.Current()
	if !bytes.HasPrefix(now, stored) {
		t.Errorf(
			"the hash of rule 1 begins with %x now, and with %x in every database", now[:8], stored,
		)
	}
	if _, known := f.Matches(99, now); known {
		t.Error("a rule from the future counts as known")
	}
}

func keyRow(status Status, change func(*record)) record {
	f := NewFingerprint("POST", "/", "", nil)
	version, hash := f.Current()
	k := record{}
	k.IdempotencyKey = db.IdempotencyKey{
		Status: string(status), HashVersion: version, RequestHash: hash, Attempts: 1,
	}
	if change != nil {
		change(&k)
	}
	return k
}

func TestJudge(t *testing.T) {
	t.Parallel()
	same, other := NewFingerprint("POST", "/", "", nil), NewFingerprint(
		"POST", "/", "", []byte("x"),
	)
	token, now := "t", time.Unix(1, 0)
	leased := func(k *record) { k.IdempotencyKey.LeaseToken = &token }
	stale := func(k *record) { leased(k); k.Stale = true }
	parked := func(k *record) { k.IdempotencyKey.ParkedAt = &now }
	expired := func(k *record) { k.Expired = true }
	tired := func(k *record) { k.IdempotencyKey.Attempts = unpacedAttempts; k.AttemptAgeSeconds = 1 }
	rested := func(k *record) { k.IdempotencyKey.Attempts = unpacedAttempts; k.AttemptAgeSeconds = 3 }
	future := func(k *record) { k.IdempotencyKey.HashVersion = 99 }
	for name, c := range map[string]struct {
		k    record
		f    Fingerprint
		want verdict
	}{
		"finished":                {keyRow(Completed, nil), same, verdictReplay},
		"finished, other request": {keyRow(Completed, nil), other, verdictReused},
		"finished, expired":       {keyRow(Completed, expired), same, verdictForget},
		// a new operation
		"finished, expired, other": {keyRow(Completed, expired), other, verdictForget},
		"failed":                   {keyRow(Failed, nil), same, verdictForget},
		"failed, other request":    {keyRow(Failed, nil), other, verdictReused},
		"leased":                   {keyRow(InProgress, leased), same, verdictInUse},
		// 422 before 409
		"leased, other request":       {keyRow(InProgress, leased), other, verdictReused},
		"stale":                       {keyRow(InProgress, stale), same, verdictTakeOver},
		"stale, other request":        {keyRow(InProgress, stale), other, verdictReused},
		"free":                        {keyRow(InProgress, nil), same, verdictTakeOver},
		"free, tried often":           {keyRow(InProgress, tired), same, verdictNotYet},
		"free, tried often, its time": {keyRow(InProgress, rested), same, verdictTakeOver},
		"parked":                      {keyRow(InProgress, parked), same, verdictParked},
		"parked, other request":       {keyRow(InProgress, parked), other, verdictReused},
		"written by a newer binary":   {keyRow(Completed, future), same, verdictUnsure},
		// whatever its age
		"in progress is never forgotten": {keyRow(InProgress, expired), same, verdictTakeOver},
	} {
		if got := judge(c.k, c.f); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The pauses grow, are spread, and are bounded.
func TestPauseAfter(t *testing.T) {
	t.Parallel()
	if p := pauseAfter(0, "k"); p != 0 {
		t.Errorf("the reconciler waits %v for what only clients have tried", p)
	}
	for passes := 1; passes < 500; passes++ {
		whole := pauseMax
		if passes < 10 {
			whole = min(pauseFirst<<(passes-1), pauseMax)
		}
		if p := pauseAfter(passes, fmt.Sprint("k", passes%7)); p < whole/2 || p > whole+1 {
			t.Errorf("after %d passes: %v, outside %v to %v", passes, p, whole/2, whole)
		}
	}
}

// A lease outlives the longest run: a call and its commit.
func TestStaleMin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		call, stale time.Duration
		ok          bool
	}{
		{20 * time.Second, 90 * time.Second, true}, {20 * time.Second, 20 * time.Second, false},
		{80 * time.Second, 90 * time.Second, true},
		{81 * time.Second, 90 * time.Second, false}, {time.Second, 2 * time.Second, true},
		{2 * time.Second, time.Second, false},
	} {
		cfg := Config{CallLimit: c.call, StaleAfter: c.stale}
		if least := cfg.StaleMin(); (c.stale >= least) != c.ok {
			t.Errorf("for a call of %v a lease has to last %v", c.call, least)
		}
		if c.ok && cfg.RunLimit() >= c.stale {
			t.Errorf("a run of %v outlives its lease of %v", cfg.RunLimit(), c.stale)
		}
	}
}
