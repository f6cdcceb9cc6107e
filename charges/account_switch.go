package charges

import (
	"context"
	"errors"
	"fmt"

	"paidonce/db"
	"paidonce/provider"
)

func (s *Store) providerAccounts(ctx context.Context) (all []ProviderAccount, err error) {
	return db.Read0(ctx, s.pool, s.providerAccountsIn)
}

func (s *Store) providerAccountsIn(ctx context.Context, q db.DBTX) ([]ProviderAccount, error) {
	rows, err := s.queries.ProviderAccountList(ctx, q)
	all := make([]ProviderAccount, 0, len(rows))
	for _, r := range rows {
		all = append(
			all,
			ProviderAccount{
				Number: r.Number, ID: r.ID, Livemode: r.Livemode, FirstSeenAt: r.FirstSeenAt,
				CurrentSince: r.CurrentSince, Current: r.Current,
			},
		)
	}
	return all, err
}

// ProviderAccounts lists the accounts that this installation works or has worked with, with what is
// unfinished at each. Errors: the database's.
func (s *Store) ProviderAccounts(ctx context.Context) ([]ProviderAccount, error) {
	all, err := s.providerAccounts(ctx)
	if err != nil {
		return nil, err
	}
	return s.withUnfinished(ctx, all)
}

func (s *Store) withUnfinished(
	ctx context.Context, all []ProviderAccount,
) ([]ProviderAccount, error) {
	rows, err := db.Read0(ctx, s.pool, s.queries.ProviderAccountUnfinished)
	for _, r := range rows {
		for i := range all {
			if all[i].Number == max(r.Number, firstAccount) {
				all[i].Unfinished += int(r.Unfinished)
				all[i].Awaiting += int(r.Awaiting)
			}
		}
	}
	return all, err
}

// Identify finds out which of the known accounts our credentials are for, current or not, and lets
// this process work for it: for what an operator does by hand. ok is false when it is none of them,
// or cannot be told. Errors: [ErrUnreachable], [*MissingRightError], or the database's.
func (s *Store) Identify(
	ctx context.Context, p provider.Provider, livemode bool,
) (account ProviderAccount, ok bool, err error) {
	a, err := askAccount(ctx, p, livemode)
	if err != nil {
		return account, false, err
	}
	all, err := s.providerAccounts(ctx)
	if err != nil {
		return account, false, err
	}
	for _, known := range all {
		if ok, err = s.isAccount(ctx, a, known); err != nil || ok {
			if ok {
				s.own.number.Store(int32(known.Number))
			}
			return known, ok, err
		}
	}
	return ProviderAccount{ID: a.account.ID, Livemode: livemode}, false, nil
}

// isAccount reports whether our credentials are for a known account: by its id, else by its newest
// charge.
func (s *Store) isAccount(ctx context.Context, a credentials, one ProviderAccount) (bool, error) {
	switch {
	case one.Livemode != a.account.Livemode:
		return false, nil
	case one.ID != "" && a.account.ID != "":
		return one.ID == a.account.ID, nil
	}
	says, err := s.compare(ctx, a, one.Number)
	return says == matchSame, err
}

// ErrAccountUnknown: nothing tells whose account our credentials are for.
var ErrAccountUnknown = errors.New(
	"whose account STRIPE_API_KEY is for cannot be told: the key needs the right to read accounts (Account: read), at least for this command",
)

// Switched is what a switch came to.
type Switched struct {
	From, To ProviderAccount // From.Number 0: there was none
	Changed  bool
}

// Switch makes the account of our credentials the current one. From then on no server with
// credentials for another claims anything. Errors: [ErrNotTold], [*MissingRightError],
// [ErrUnreachable], or the database's.
func (s *Store) Switch(ctx context.Context, p provider.Provider, livemode bool) (Switched, error) {
	a, err := askAccount(ctx, p, livemode)
	if err != nil {
		return Switched{}, err
	}
	if err := s.keepForgotten(ctx, a); err != nil {
		return Switched{}, err
	}
	all, err := s.ProviderAccounts(ctx)
	if err != nil {
		return Switched{}, err
	}
	var w Switched
	current, learnt := currentOf(all)
	if learnt {
		w.From = current
	}
	target := a.account
	for _, one := range all {
		same, err := s.isAccount(ctx, a, one)
		switch {
		case err != nil:
			return w, err
		case same && one.Current:
			w.To = one
			return w, nil
		case same && a.account.ID == "":
			target.ID = one.ID
		}
	}
	if target.ID == "" && learnt && current.Livemode == livemode {
		// Of an account that is not told, this much has to be: it is not the one that we have.
		if says, err := s.compare(ctx, a, current.Number); err != nil || says != matchOther {
			return w, errors.Join(ErrAccountUnknown, err, a.withheld)
		}
	}
	w.Changed = true
	w.To, err = s.makeCurrent(ctx, target, w.From.Number)
	return w, err
}

// keepForgotten keeps the account of charges that were made before accounts were known, when our
// credentials are for another: it is the first one, without an id.
func (s *Store) keepForgotten(ctx context.Context, a credentials) error {
	all, err := s.providerAccounts(ctx)
	if err != nil || len(all) > 0 {
		return err
	}
	says, err := s.compare(ctx, a, firstAccount)
	if err != nil || says != matchOther {
		return err
	}
	newest, found, err := s.newest(ctx, firstAccount)
	if err != nil || !found {
		return err
	}
	_, err = s.makeCurrent(ctx, provider.Account{Livemode: newest.Livemode}, noAccount)
	return err
}

// OfCurrentAccount reports whether an operation is one of the installation's current account, or of
// none, as one that is not known here. Errors: the database's.
func (s *Store) OfCurrentAccount(ctx context.Context, operationID string) (bool, error) {
	number, found, err := s.accountOfOperation(ctx, operationID)
	if err != nil || !found {
		return err == nil, err
	}
	current, err := s.currentAccount(ctx)
	return current == noAccount || max(number, firstAccount) == current, err
}

// CheckAccount is nil for an operation of the account that this process works for. Errors name both
// accounts.
func (s *Store) CheckAccount(ctx context.Context, operationID string) error {
	number, found, err := s.accountOfOperation(ctx, operationID)
	if err != nil || !found || s.own.is(number) {
		return err
	}
	theirs, ours, err := s.bothAccounts(ctx, number)
	if err != nil {
		return err
	}
	return fmt.Errorf("the operation was sent to %s; STRIPE_API_KEY is for %s", theirs, ours)
}

func (s *Store) accountOfOperation(
	ctx context.Context, operationID string,
) (number int16, found bool, err error) {
	return db.One(ctx, s.pool, s.queries.ProviderAccountOfOperation, operationID)
}
