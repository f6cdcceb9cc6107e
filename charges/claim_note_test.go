package charges

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"paidonce/idemkeys"
)

func note(key string) string {
	r := idemkeys.Request{
		AccountID: "acct_01ARZ3NDEKTSV4RRFFQ69G5FAV", Key: key,
		RequestID:   "req_01ARZ3NDEKTSV4RRFFQ69G5FAV",
		Fingerprint: idemkeys.NewFingerprint("POST", "/v1/charges", "", []byte("{}")),
	}
	return dated(frozenNote(r, KindCreate, "ch_01ARZ3NDEKTSV4RRFFQ69G5FAV", true), 1796001318)
}

func TestClaimNoteIsReadAsWritten(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"k", strings.Repeat("ü", 100), strings.Repeat("k", 255), "somebody@example.com", "a b"} {
		text := note(key)
		if len(text) > 500 || strings.Contains(text, "@") ||
			strings.Contains(text, key) && len(key) > 1 {
			t.Errorf("%d characters, or it tells the key: %s", len(text), text)
		}
		n, ok := readNote(text)
		if !ok || n.Account != "acct_01ARZ3NDEKTSV4RRFFQ69G5FAV" ||
			n.KeyHash != keyHash(n.Account, key) || len(n.RequestHash) != 32 ||
			n.Resource != "ch_01ARZ3NDEKTSV4RRFFQ69G5FAV" || n.Kind != KindCreate || !n.Capture || !n.Created.Equal(time.Unix(1796001318, 0)) {
			t.Errorf("%q is read as %+v, %t", text, n, ok)
		}
	}
	if dated("", 1) != "" {
		t.Error(
			"what was frozen without a note is sent with one: another parameter under the same derived key",
		)
	}
}

func FuzzClaimNote(f *testing.F) {
	f.Add(note("k"))
	f.Add("1 a b c d e f g h 1")
	f.Add(strings.Repeat(" ", 9))
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := readNote(s)
		if ok &&
			(n.Account == "" || n.Resource == "" || len(n.RequestHash) != 32 || n.Created.Unix() <= 0) {
			t.Errorf("%q passes for a note: %+v", s, n)
		}
	})
}

func TestEventIDs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, parts := range [][3]string{
		{"charge.succeeded", "ch_1", ""}, {"charge.captured", "ch_1", ""},
		{"charge.succeeded", "ch_2", ""},
		{"charge.refunded", "ch_1", "op_1"}, {"charge.refunded", "ch_1", "op_2"},
		{"refund.created", "re_1", ""},
	} {
		id := eventID(parts[0], parts[1], parts[2])
		if seen[id] || !regexp.MustCompile(`^evt_[0-9A-Z]{26}$`).MatchString(id) {
			t.Errorf("%v: %s", parts, id)
		}
		seen[id] = true
	}
	if eventID("charge.captured", "ch_1", "op_1") != eventID("charge.captured", "ch_1", "op_2") {
		t.Error("a charge is captured once, whoever does it")
	}
}
