package db

import (
	"crypto/rand"

	"github.com/oklog/ulid/v2"
)

// NewID returns prefix, an underscore and a ULID: ordered by time for the sake of indexes, with 80 random bits so that nobody guesses one.
func NewID(prefix string) string {
	return prefix + "_" + ulid.MustNew(ulid.Now(), rand.Reader).String()
}
