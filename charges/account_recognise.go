package charges

import (
	"context"
	"errors"
	"fmt"
	"time"

	"paidonce/db"
	"paidonce/provider"
)

// OtherAccountError says that our credentials are for another account than the one that operations
// were sent to.
type OtherAccountError struct {
	SentTo     ProviderAccount
	Key        ProviderAccount // its id is empty when only this much is known: it is not SentTo
	Unfinished int
	Awaiting   int
}

func (e *OtherAccountError) Error() string {
	key := e.Key.String()
	if e.Key.ID == "" {
		key = "another one, which does not know the charges of that"
	}
	open := fmt.Sprintf("%d operations have no outcome there", e.Unfinished)
	if e.Awaiting > 0 {
		open += fmt.Sprintf(", %d charges wait for their payer", e.Awaiting)
	}
	return fmt.Sprintf("operations are sent to %s; STRIPE_API_KEY is for %s (%s). If this installation is meant to move, run `paidonce provider switch` with the new key",
		e.SentTo, key, open)
}

// MissingRightError says that our credentials are not accepted, or may not read what would tell
// whose account they are for.
type MissingRightError struct{ Cause error }

func (e *MissingRightError) Error() string {
	return "the provider does not accept STRIPE_API_KEY, or not to say whose account it is for: then it needs the right to read accounts (Account: read), or charges (Charges: read): " +
		e.Cause.Error()
}

func (e *MissingRightError) Unwrap() error { return e.Cause }

// UnconfirmedAccountError says that nothing shows whether our credentials are for the account
// that operations without an outcome were sent to: these were sent with others, or elsewhere.
type UnconfirmedAccountError struct {
	SentTo     ProviderAccount
	Unfinished int
	Cause      error
}

func (e *UnconfirmedAccountError) Error() string {
	return fmt.Sprintf("%d operations without an outcome were sent to %s, with another STRIPE_API_KEY or STRIPE_API_BASE, and nothing shows whether these are for the same account: "+
		"start with the former ones until the operations are settled, or with a key that has the right to read accounts (Account: read): %v", e.Unfinished, e.SentTo, e.Cause)
}

func (e *UnconfirmedAccountError) Unwrap() error { return e.Cause }

// ErrUnreachable: the provider cannot be asked at the moment whose account our credentials are for.
var ErrUnreachable = errors.New("the provider cannot be asked whose account STRIPE_API_KEY is for")

// credentials is what the provider says of our credentials.
type credentials struct {
	provider provider.Provider
	account  provider.Account // without an id when it does not say
	withheld error            // why it does not say, when our credentials may not ask
}

// askWait bounds each question about the account: a server starts without the answer, and asks
// again.
const askWait = 10 * time.Second

// askAccount asks whose account our credentials are for. Errors: [ErrUnreachable].
func askAccount(ctx context.Context, p provider.Provider, livemode bool) (credentials, error) {
	a := credentials{provider: p}
	var err error
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	a.account, err = p.Account(ctx)
	// our own word for it: what an error leaves of the answer says nothing
	a.account.Livemode = livemode
	switch withheld, unreachable := classifyReadError(err); {
	case unreachable:
		return a, fmt.Errorf("%w: %w", ErrUnreachable, err)
	case withheld:
		a.withheld = err
	}
	return a, nil
}

// classifyReadError reports of an error of a read whether our credentials may not make it, or
// nothing was answered at all. Neither: whoever answers knows no such thing, as a gateway or a
// double.
func classifyReadError(err error) (withheld, unreachable bool) {
	switch provider.KindOf(err) {
	case provider.Credentials:
		return true, false
	case provider.Unsupported, provider.Unreadable, provider.Conflict:
		return false, false
	}
	return false, err != nil
}

// accountMatch is what a charge of an account says about our credentials.
type accountMatch int

const (
	matchUndecided accountMatch = iota // there is no charge to ask about, or nobody who would know
	matchSame                          // our credentials see it: they are for its account
	matchOther                         // they do not
)

// compare asks for the newest charge of an account. Errors: [ErrUnreachable], [*MissingRightError],
// or the database's.
func (s *Store) compare(ctx context.Context, a credentials, number int16) (accountMatch, error) {
	newest, found, err := s.newest(ctx, number)
	switch {
	case err != nil || !found:
		return matchUndecided, err
	case newest.Livemode != a.account.Livemode:
		return matchOther, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	got, err := a.provider.GetCharge(ctx, newest.ProviderID)
	switch withheld, unreachable := classifyReadError(err); {
	case unreachable:
		return matchUndecided, fmt.Errorf("%w: %w", ErrUnreachable, err)
	case withheld:
		return matchUndecided, &MissingRightError{err}
	case err != nil:
		return matchUndecided, nil
	case got == nil:
		return matchOther, nil
	}
	return matchSame, nil
}

// newest returns the newest charge of an account that the provider has named. Errors: the
// database's.
func (s *Store) newest(
	ctx context.Context, number int16,
) (row db.NewestAtProviderRow, found bool, err error) {
	rows, err := db.Read(
		ctx, s.pool, s.queries.NewestAtProvider,
		db.NewestAtProviderParams{ProviderAccount: number, MaxRows: 1},
	)
	if err != nil || len(rows) == 0 {
		return row, false, err
	}
	return rows[0], true, nil
}

// Recognised is how an account was recognised.
type Recognised struct {
	Account ProviderAccount
	New     bool // it was not the current one before
	// nothing speaks against it, and nothing for it: why the provider does not say; or nil
	Unsure error
}

// errMoved: another process has made another account the current one meanwhile.
var errMoved = db.Final(errors.New("the current account at the provider has just changed"))

// recogniseTries bounds how often another process may be first.
const recogniseTries = 5

// Recognise finds out whose account our credentials are for, and keeps it: from then on this
// process works for it. Errors: [*OtherAccountError], [*UntoldError], [*MissingRightError],
// [ErrUnreachable], or the database's.
func (s *Store) Recognise(
	ctx context.Context, p provider.Provider, livemode bool,
) (Recognised, error) {
	a, err := askAccount(ctx, p, livemode)
	if err != nil {
		return Recognised{}, err
	}
	var r Recognised
	for range recogniseTries {
		r, err = s.recognise(ctx, a)
		if !errors.Is(err, errMoved) {
			break
		}
	}
	if err == nil {
		s.own.unconfirmed.Store(r.Unsure != nil) // before the number: with it claims begin
		s.own.number.Store(int32(r.Account.Number))
		s.own.replaced.Store(false)
	}
	return r, err
}

func (s *Store) recognise(ctx context.Context, a credentials) (r Recognised, err error) {
	all, err := s.providerAccounts(ctx)
	if err != nil {
		return r, err
	}
	current, learnt := currentOf(all)
	r = Recognised{New: !learnt, Account: current}
	named := a.account.ID != ""
	switch {
	case learnt && current.Livemode != a.account.Livemode,
		learnt && named && current.ID != "" && current.ID != a.account.ID:
		r.New = true
		r.Account, err = s.replaceUnused(ctx, a, current)
		return r, err
	case learnt && named && current.ID != "":
		return r, nil
	}
	// An id on one side at most: a charge has to tell.
	says, err := s.compare(ctx, a, current.Number)
	switch {
	case err != nil:
		return r, err
	case says == matchOther:
		if newest, found, err := s.newest(ctx, current.Number); err == nil && found && !learnt {
			current.Livemode = newest.Livemode
		}
		return r, s.otherAccount(ctx, a, current)
	case says == matchUndecided:
		if learnt { // what was sent before accounts were known has no mark
			if err := s.sentByOthers(ctx, a, current); err != nil {
				return r, err
			}
		}
		if !named {
			r.Unsure = a.reason()
		}
	}
	switch {
	case !learnt:
		r.Account, err = s.makeCurrent(ctx, a.account, noAccount)
	case named:
		r.Account.ID = a.account.ID
		err = db.Retry(ctx, func(ctx context.Context) error {
			return s.queries.ProviderAccountName(
				ctx, s.pool, db.ProviderAccountNameParams{ID: a.account.ID, Number: current.Number},
			)
		})
	}
	return r, err
}

// sentByOthers is an error when anything without an outcome was sent with other credentials than
// ours: the first charge of an installation, say, of which no answer came. Nothing tells that it
// was our account.
func (s *Store) sentByOthers(ctx context.Context, a credentials, current ProviderAccount) error {
	n, err := db.Read(
		ctx, s.pool, s.queries.ProviderAccountSentByOthers,
		db.ProviderAccountSentByOthersParams{Number: current.Number, Sender: s.own.sender},
	)
	if err != nil || n == 0 {
		return err
	}
	return &UnconfirmedAccountError{SentTo: current, Unfinished: int(n), Cause: a.reason()}
}

func (a credentials) reason() error {
	if a.withheld != nil {
		return a.withheld
	}
	if a.account.ID != "" {
		return errors.New("no charge shows whether the operations are of " + a.account.ID)
	}
	return errors.New("the provider names no account")
}

// currentOf finds the installation's current account; before there is one, what there is belongs to
// the first.
func currentOf(all []ProviderAccount) (current ProviderAccount, learnt bool) {
	for _, a := range all {
		if a.Current {
			return a, true
		}
	}
	return ProviderAccount{Number: firstAccount}, false
}

// otherAccount is the error that says so.
func (s *Store) otherAccount(ctx context.Context, a credentials, current ProviderAccount) error {
	all, err := s.withUnfinished(ctx, []ProviderAccount{current})
	if err != nil {
		return err
	}
	return &OtherAccountError{
		SentTo: all[0], Key: ProviderAccount{ID: a.account.ID, Livemode: a.account.Livemode},
		Unfinished: all[0].Unfinished, Awaiting: all[0].Awaiting,
	}
}

// replaceUnused takes another account when nothing was ever sent to any.
func (s *Store) replaceUnused(
	ctx context.Context, a credentials, current ProviderAccount,
) (ProviderAccount, error) {
	used, err := db.Read0(ctx, s.pool, s.queries.ProviderAccountUsed)
	switch {
	case err != nil:
		return current, err
	case used:
		return current, s.otherAccount(ctx, a, current)
	}
	return s.makeCurrent(ctx, a.account, current.Number)
}

// makeCurrent makes an account the current one instead of was: the one that was stored, or a new
// one. Of several processes that do so at the same moment one is first; the others hear errMoved.
func (s *Store) makeCurrent(
	ctx context.Context, a provider.Account, was int16,
) (used ProviderAccount, err error) {
	err = db.Tx(ctx, s.pool, func(ctx context.Context, tx db.DBTX) error {
		now, err := s.queries.ProviderAccountLock(ctx, tx)
		if err != nil {
			return err
		}
		if now != was {
			return errMoved
		}
		all, err := s.providerAccountsIn(ctx, tx)
		if err != nil {
			return err
		}
		used = ProviderAccount{ID: a.ID, Livemode: a.Livemode, Current: true}
		for _, known := range all {
			if a.ID != "" && known.ID == a.ID && known.Livemode == a.Livemode {
				used.Number = known.Number
			}
		}
		if used.Number == 0 {
			if used.Number, err = s.queries.ProviderAccountAdd(
				ctx, tx, db.ProviderAccountAddParams{ID: a.ID, Livemode: a.Livemode},
			); err != nil {
				return err
			}
		}
		return s.queries.ProviderAccountUse(ctx, tx, used.Number)
	})
	return used, err
}
