package db

import (
	"crypto/rand"
	"crypto/sha256"
	"time"

	"github.com/oklog/ulid/v2"
)

// NewID returns prefix, an underscore and a ULID: ordered by time for the sake of indexes, with 80
// random bits so that nobody guesses one.
func NewID(prefix string) string {
	return prefix + "_" + ulid.MustNew(ulid.Now(), rand.Reader).String()
}

// DerivedID returns the id of an object that something else has a name for: the same each time.
func DerivedID(prefix string, at time.Time, sum [sha256.Size]byte) string {
	id := ulid.ULID(sum[:16])
	_ = id.SetTime(ulid.Timestamp(at)) // fails in ten thousand years only
	return prefix + "_" + id.String()
}
