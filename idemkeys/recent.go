package idemkeys

import (
	"hash/maphash"
	"sync/atomic"
)

// recentKeysSize is how many keys are remembered: half a megabyte, and a minute of a busy server.
const recentKeysSize = 1 << 16

// recentKeys remembers which keys this process has seen lately. It may forget any of them and, once
// in 2^64, mistake one for another. So it only guesses whether a key is taken.
type recentKeys struct {
	seed  maphash.Seed
	slots [recentKeysSize]atomic.Uint64
}

func newRecentKeys() *recentKeys { return &recentKeys{seed: maphash.MakeSeed()} }

func (s *recentKeys) hash(account, key string) uint64 {
	return maphash.Comparable(s.seed, scopedKey{account, key})
}

func (s *recentKeys) add(account, key string) {
	h := s.hash(account, key)
	s.slots[h%recentKeysSize].Store(h)
}

func (s *recentKeys) has(account, key string) bool {
	h := s.hash(account, key)
	return s.slots[h%recentKeysSize].Load() == h
}
