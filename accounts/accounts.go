// Package accounts is who may call: accounts and their API keys.
//
// A key is shown once, when it is made; only its SHA-256 is stored. Keys are random (260 bits), so
// a plain hash is enough: there is nothing to guess, and looking a hash up reveals nothing by its
// timing.
package accounts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"paidonce/db"
)

// Errors of this package.
var (
	ErrUnknownKey    = errors.New("no such API key, or it is revoked")
	ErrNoSuchKey     = errors.New("no API key has this id")
	ErrNoSuchAccount = errors.New("no account has this id or name")
	ErrReferenceFrom = errors.New("a key of metadata has 1 to 40 printable characters without square brackets")
	ErrName          = errors.New("an account's name must have 1 to 100 characters, none of them a control character")
)

const (
	// KeyPrefix begins the keys that may do everything.
	KeyPrefix = "sk_"
	// ReadOnlyPrefix begins those that only read. What counts is the row. But a server from before
	// there were read-only keys, which does not look at it, refuses whatever does not begin with
	// KeyPrefix.
	ReadOnlyPrefix = "rk_"

	keyMax    = 200 // bytes; longer strings are not ours and need no hashing
	hintChars = 4   // enough to tell a handful of keys apart, too few to help anybody guess
	// How long Cached believes what the database said. Only requests that check the key again in
	// their own statement use it.
	cacheFor = 30 * time.Second
	// The cache starts anew when it is this full: keys that are in use come back by themselves.
	cacheMax = 10_000
)

// Identity is who an API key speaks for.
type Identity struct {
	AccountID string
	APIKeyID  string
	// ReadOnly says that the key may read, and nothing else. A key never changes in this.
	ReadOnly bool
	// ReferenceFrom is the key of metadata that holds the reference of a charge that names none;
	// empty: there is none.
	ReferenceFrom string
}

// Store keeps accounts and API keys. Safe for concurrent use.
type Store struct {
	pool    db.DBTX
	queries *db.Queries

	mu    sync.Mutex
	cache map[[sha256.Size]byte]cached
}

type cached struct {
	Identity
	until time.Time
}

// NewStore returns a store on the database.
func NewStore(pool db.DBTX) *Store {
	return &Store{pool: pool, queries: db.New(), cache: map[[sha256.Size]byte]cached{}}
}

// Authenticate asks the database whose key this is. Errors: [ErrUnknownKey], or the database's.
func (s *Store) Authenticate(ctx context.Context, key string) (Identity, error) {
	ours := strings.HasPrefix(key, KeyPrefix) || strings.HasPrefix(key, ReadOnlyPrefix)
	if !ours || len(key) > keyMax {
		return Identity{}, ErrUnknownKey
	}
	hash := sha256.Sum256([]byte(key))
	row, found, err := db.One(ctx, s.pool, s.queries.APIKeyByHash, hash[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		return Identity{}, err
	case !found:
		delete(s.cache, hash)
		return Identity{}, ErrUnknownKey
	}
	id := Identity{
		AccountID: row.AccountID, APIKeyID: row.ID, ReadOnly: row.ReadOnly,
		ReferenceFrom: row.ReferenceFrom,
	}
	if len(s.cache) >= cacheMax {
		clear(s.cache)
	}
	s.cache[hash] = cached{id, time.Now().Add(cacheFor)}
	return id, nil
}

// Cached answers from what was learnt in the last seconds, else like Authenticate. A key that was
// revoked meanwhile may still pass: only for requests whose own statement checks the key again.
func (s *Store) Cached(ctx context.Context, key string) (Identity, error) {
	hash := sha256.Sum256([]byte(key))
	s.mu.Lock()
	c, ok := s.cache[hash]
	s.mu.Unlock()
	if ok && time.Now().Before(c.until) {
		return c.Identity, nil
	}
	return s.Authenticate(ctx, key)
}

// NewKey is an API key just made. Secret is shown once and never again.
type NewKey struct {
	ID          string
	AccountID   string
	AccountName string
	Secret      string
	ReadOnly    bool
	CreatedAt   time.Time
}

// CreateKey makes an API key for the account of that name, which is made when it does not exist.
// Errors: [ErrName], or the database's.
func (s *Store) CreateKey(ctx context.Context, account string) (NewKey, error) {
	return s.createKey(ctx, account, KeyPrefix)
}

// CreateReadOnlyKey is CreateKey for a key that may read, and nothing else.
func (s *Store) CreateReadOnlyKey(ctx context.Context, account string) (NewKey, error) {
	return s.createKey(ctx, account, ReadOnlyPrefix)
}

func (s *Store) createKey(ctx context.Context, account, prefix string) (NewKey, error) {
	account = strings.TrimSpace(account)
	if account == "" || len([]rune(account)) > 100 ||
		strings.ContainsFunc(account, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return NewKey{}, ErrName
	}
	a, err := db.Repeat(ctx, s.pool, s.queries.AccountEnsure, db.AccountEnsureParams{
		ID: db.NewID("acct"), Name: account,
	})
	if err != nil {
		return NewKey{}, fmt.Errorf("account: %w", err)
	}
	secret := prefix + rand.Text() + rand.Text()
	hash := sha256.Sum256([]byte(secret))
	k := NewKey{
		ID: db.NewID("key"), AccountID: a.ID, AccountName: a.Name, Secret: secret,
		ReadOnly: prefix == ReadOnlyPrefix,
	}
	k.CreatedAt, err = db.Write(ctx, s.pool, s.queries.APIKeyCreate, db.APIKeyCreateParams{
		ID: k.ID, AccountID: a.ID, KeyHash: hash[:], KeyHint: secret[len(secret)-hintChars:],
		ReadOnly: k.ReadOnly,
	})
	if err != nil {
		return NewKey{}, fmt.Errorf("API key: %w", err)
	}
	return k, nil
}

// Account is whose keys, charges and events they are.
type Account struct {
	ID, Name string
	// the key of metadata that holds the reference of a charge that names none; empty: there is
	// none
	ReferenceFrom string
	CreatedAt     time.Time
}

// Find returns the account with this id, or else of this name. Errors: [ErrNoSuchAccount], or the
// database's.
func (s *Store) Find(ctx context.Context, idOrName string) (Account, error) {
	a, found, err := db.One(ctx, s.pool, s.queries.AccountFind, idOrName)
	if err == nil && !found {
		err = ErrNoSuchAccount
	}
	return Account{ID: a.ID, Name: a.Name, ReferenceFrom: db.OrEmpty(a.ReferenceFrom), CreatedAt: a.CreatedAt}, err
}

// List returns the accounts, the oldest first, at most as many as asked for. Errors: the
// database's.
func (s *Store) List(ctx context.Context, most int) ([]Account, error) {
	rows, err := db.Read(ctx, s.pool, s.queries.AccountList, int32(most)) //nolint:gosec // bounded by the caller
	list := make([]Account, 0, len(rows))
	for _, a := range rows {
		list = append(list, Account{
			ID: a.ID, Name: a.Name, ReferenceFrom: db.OrEmpty(a.ReferenceFrom), CreatedAt: a.CreatedAt,
		})
	}
	return list, err
}

// referenceFromMax is the longest key of metadata that a charge can have.
const referenceFromMax = 40

// SetReferenceFrom sets which key of metadata holds the reference of the account's charges that
// name none; empty: none does. Servers go by it within half a minute. Errors: [ErrReferenceFrom],
// [ErrNoSuchAccount], or the database's.
func (s *Store) SetReferenceFrom(ctx context.Context, idOrName, key string) (Account, error) {
	if len([]rune(key)) > referenceFromMax || strings.ContainsAny(key, "[]") ||
		strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return Account{}, ErrReferenceFrom
	}
	a, err := s.Find(ctx, idOrName)
	if err != nil {
		return Account{}, err
	}
	a.ReferenceFrom = key
	_, err = db.Repeat(ctx, s.pool, s.queries.AccountSetReferenceFrom,
		db.AccountSetReferenceFromParams{ReferenceFrom: key, ID: a.ID})
	return a, err
}

// Key is an API key as an operator sees it.
type Key struct {
	ID        string
	AccountID string
	Account   string
	Hint      string // the last characters of the key
	ReadOnly  bool   // it may read, and nothing else
	CreatedAt time.Time
	RevokedAt *time.Time
}

// Keys lists API keys, oldest first, of one account or of all (account "").
func (s *Store) Keys(ctx context.Context, account string) ([]Key, error) {
	var name *string
	if account != "" {
		name = &account
	}
	rows, err := db.Read(ctx, s.pool, s.queries.APIKeyList, name)
	if err != nil {
		return nil, err
	}
	keys := make([]Key, 0, len(rows))
	for _, r := range rows {
		keys = append(keys, Key{
			ID: r.ID, AccountID: r.AccountID, Account: r.Account, Hint: r.KeyHint,
			ReadOnly: r.ReadOnly, CreatedAt: r.CreatedAt, RevokedAt: r.RevokedAt,
		})
	}
	return keys, nil
}

// Revoke refuses the key from now on; revoking twice changes nothing. Errors: [ErrNoSuchKey], or
// the database's.
func (s *Store) Revoke(ctx context.Context, id string) error {
	n, err := db.Repeat(ctx, s.pool, s.queries.APIKeyRevoke, id)
	if err == nil && n == 0 {
		return ErrNoSuchKey
	}
	return err
}
