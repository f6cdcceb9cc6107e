package idemkeys

import (
	"hash/maphash"
	"sync/atomic"
)

// sightingsSize is how many keys are remembered: half a megabyte, and a minute of a busy server.
const sightingsSize = 1 << 16

// sightings remembers which keys this process has seen lately. It may forget any of them, and, once in 2^64, take one for another: it is a guess whether a
// key is taken, never knowledge.
type sightings struct {
	seed  maphash.Seed
	slots [sightingsSize]atomic.Uint64
}

func newSightings() *sightings { return &sightings{seed: maphash.MakeSeed()} }

func (s *sightings) hash(account, key string) uint64 {
	return maphash.Comparable(s.seed, scopedKey{account, key})
}

func (s *sightings) add(account, key string) {
	h := s.hash(account, key)
	s.slots[h%sightingsSize].Store(h)
}

func (s *sightings) has(account, key string) bool {
	h := s.hash(account, key)
	return s.slots[h%sightingsSize].Load() == h
}
