package idemkeys

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
)

// fingerprintVersion is stored with each hash. A new rule gets a new number and the old function
// stays, so that a deployment still recognises the requests of the one before.
const fingerprintVersion = 1

// Fingerprint reports whether two requests are the same: method, path, query and parameters, never
// headers.
type Fingerprint struct {
	parts [][]byte
}

// NewFingerprint takes the parts in canonical form: query sorted, parameters key-sorted with exact
// numbers.
func NewFingerprint(method, path, query string, params []byte) Fingerprint {
	return Fingerprint{parts: [][]byte{[]byte(method), []byte(path), []byte(query), params}}
}

// Current returns the hash by the current rule, and the number of that rule.
func (f Fingerprint) Current() (version int16, hash []byte) {
	return fingerprintVersion, f.v1()
}

// Matches reports whether a stored hash is of this request. known is false for a rule that this
// binary does not have: then same says nothing.
func (f Fingerprint) Matches(version int16, hash []byte) (same, known bool) {
	switch version {
	case 1:
		return subtle.ConstantTimeCompare(f.v1(), hash) == 1, true
	default:
		return false, false
	}
}

// v1 is SHA-256 over the parts, each preceded by its length, so that no byte can move from one part
// to the next unseen.
func (f Fingerprint) v1() []byte {
	h := sha256.New()
	var size [8]byte
	for _, part := range f.parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	return h.Sum(nil)
}
