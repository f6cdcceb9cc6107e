package charges

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"paidonce/idemkeys"
)

// claimNote is what the provider keeps of an operation beside its tags, so that the operation can
// be rebuilt should the database forget it. It holds no personal data and no secret: of the
// client's key and request it has hashes. It goes along as one pair of metadata, of at most 500
// characters.
type claimNote struct {
	Account     string
	KeyHash     [32]byte // of account and key
	HashVersion int16
	RequestHash []byte
	Resource    string
	Kind        string
	RequestID   string
	Capture     bool // of a charge: not only authorised
	Created     time.Time
}

// claimNoteForm is the first word of a note, the version of its format.
const claimNoteForm = "1"

// keyHash identifies a key where the key itself must not be disclosed. An account's id has no
// space.
func keyHash(account, key string) [32]byte { return sha256.Sum256([]byte(account + " " + key)) }

// frozenNote is a note without its time, which is known when the claim is committed.
func frozenNote(r idemkeys.Request, kind, resource string, capture bool) string {
	version, hash := r.Fingerprint.Current()
	how := "authorize"
	if capture {
		how = "capture"
	}
	key := keyHash(r.AccountID, r.Key)
	return strings.Join([]string{
		claimNoteForm, r.AccountID, base64.RawURLEncoding.EncodeToString(key[:]),
		strconv.Itoa(int(version)), base64.RawURLEncoding.EncodeToString(hash), resource, kind,
		r.RequestID, how,
	}, " ")
}

// dated completes a frozen note with the time of the claim, which is frozen as well: every attempt
// of an operation sends the same note. An operation that was frozen by a version without notes has
// none.
func dated(note string, claimedAt int64) string {
	if note == "" || claimedAt == 0 {
		return ""
	}
	return fmt.Sprint(note, " ", claimedAt)
}

var claimNoteIDs = regexp.MustCompile(`^[A-Za-z]+_[A-Za-z0-9]+$`)

// readNote reads a note. ok is false for anything that is not exactly in our format: anybody with
// access to the provider's account can write metadata.
func readNote(s string) (n claimNote, ok bool) {
	f := strings.Split(s, " ")
	if len(f) != 10 || f[0] != claimNoteForm || f[8] != "capture" && f[8] != "authorize" {
		return n, false
	}
	for _, id := range []string{f[1], f[5], f[7]} {
		if !claimNoteIDs.MatchString(id) {
			return n, false
		}
	}
	key, errKey := base64.RawURLEncoding.DecodeString(f[2])
	request, errRequest := base64.RawURLEncoding.DecodeString(f[4])
	version, errVersion := strconv.ParseInt(f[3], 10, 16)
	created, errCreated := strconv.ParseInt(f[9], 10, 64)
	if errKey != nil || errRequest != nil || errVersion != nil || errCreated != nil ||
		len(key) != 32 || len(request) != 32 || created <= 0 {
		return n, false
	}
	n = claimNote{
		Account: f[1], HashVersion: int16(version), RequestHash: request, Resource: f[5],
		Kind: f[6], RequestID: f[7], Capture: f[8] == "capture", Created: time.Unix(created, 0),
	}
	copy(n.KeyHash[:], key)
	return n, true
}
