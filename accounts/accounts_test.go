package accounts_test

import (
	"errors"
	"strings"
	"testing"

	"paidonce/accounts"
	"paidonce/db"
	"paidonce/internal/dbtest"
)

// What a key may do is known wherever it is looked up, and a server that knows no read-only keys,
// which asks for the prefix of all others, refuses them.
func TestReadOnlyKeys(t *testing.T) {
	t.Parallel()
	pool, err := db.Open(dbtest.New(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, ctx := accounts.NewStore(pool), t.Context()
	full, err := s.CreateKey(ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	reader, err := s.CreateReadOnlyKey(ctx, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if full.ReadOnly || !reader.ReadOnly || reader.AccountID != full.AccountID ||
		!strings.HasPrefix(full.Secret, accounts.KeyPrefix) ||
		!strings.HasPrefix(reader.Secret, "rk_") {
		t.Errorf("got %+v and %+v", full, reader)
	}
	for _, k := range []accounts.NewKey{full, reader} {
		asked, err := s.Authenticate(ctx, k.Secret)
		cached, errCached := s.Cached(ctx, k.Secret)
		if err != nil || errCached != nil || asked != cached || asked.ReadOnly != k.ReadOnly ||
			asked.APIKeyID != k.ID || asked.AccountID != k.AccountID {
			t.Errorf("%s is %+v %v, and %+v %v", k.ID, asked, err, cached, errCached)
		}
	}
	other := accounts.KeyPrefix + strings.TrimPrefix(reader.Secret, accounts.ReadOnlyPrefix)
	if _, err := s.Authenticate(ctx, other); !errors.Is(err, accounts.ErrUnknownKey) {
		t.Errorf("under the other prefix the key is %v", err)
	}
	keys, err := s.Keys(ctx, "shop")
	if err != nil || len(keys) != 2 || keys[0].ReadOnly || !keys[1].ReadOnly {
		t.Errorf("listed are %+v %v", keys, err)
	}
	if err := s.Revoke(ctx, reader.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authenticate(ctx, reader.Secret); !errors.Is(err, accounts.ErrUnknownKey) {
		t.Errorf("revoked, it is %v", err)
	}
}
