package charges

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
)

// An operation belongs to the account at the provider that it was sent to. Its charge names it, and
// so do its frozen parameters: no other account is asked about it, nor sent anything of it.

// ProviderAccount is an account at the provider, in one of its modes, that this installation works
// or has worked with.
type ProviderAccount struct {
	Number       int16
	ID           string // empty: not known
	Livemode     bool
	FirstSeenAt  time.Time
	CurrentSince *time.Time
	Current      bool
	Unfinished   int // operations without an outcome; only of [Store.ProviderAccounts]
	Awaiting     int // charges that wait for their payer; likewise
}

// String names the account for an operator.
func (a ProviderAccount) String() string {
	mode := "test mode"
	if a.Livemode {
		mode = "live mode"
	}
	switch {
	case a.ID != "":
		return a.ID + " (" + mode + ")"
	case a.Number == 0:
		return "an account that nobody has told yet"
	}
	return fmt.Sprintf("account number %d, whose id is not known (%s)", a.Number, mode)
}

// ownAccount is the account that this process's credentials are for, by its number: unasked where
// nobody asks, unknown until it is known.
type ownAccount struct {
	number      atomic.Int32
	replaced    atomic.Bool // it is no longer the installation's current one
	unconfirmed atomic.Bool // nothing speaks against that account, and nothing for it
	sender      string      // marks our credentials
}

// senderMark is what is frozen of our credentials: nothing, once it is told whose they are.
func (o *ownAccount) senderMark() string {
	if o.unconfirmed.Load() {
		return o.sender
	}
	return ""
}

const (
	noAccount      = 0
	unknownAccount = -1
	// firstAccount is the number of the account that charges without one belong to.
	firstAccount = 1
)

// is reports whether what was sent to this account is ours to send and to ask about. 0 is the
// first account.
func (o *ownAccount) is(number int16) bool {
	ours := o.get()
	if ours == noAccount {
		return number == 0
	}
	return max(number, firstAccount) == ours
}

func (o *ownAccount) get() int16 { return int16(o.number.Load()) } //nolint:gosec // was one

// accountOf reads the account out of what is frozen of an operation of any kind.
func accountOf(params []byte) (int16, error) {
	f, err := readFrozen[struct {
		Account int16 `json:"account"`
		Request struct {
			Account int16 `json:"account"`
		} `json:"request"`
	}](params)
	return max(f.Account, f.Request.Account), err
}

// withAccountCheck returns a kind whose phases never get an operation of another account than ours.
func (s *Store) withAccountCheck(k idemkeys.Kind) idemkeys.Kind {
	for point, phase := range k.Phases {
		k.Phases[point] = func(
			ctx context.Context, op *idemkeys.Operation,
		) (*idemkeys.Commit, error) {
			if op.Attempts > 1 { // the first is made by the process that claimed it
				if err := s.checkOperation(ctx, op); err != nil {
					return nil, err
				}
			}
			return phase(ctx, op)
		}
	}
	resolve := k.Resolve
	k.Resolve = func(
		ctx context.Context, op *idemkeys.Operation, r idemkeys.Resolution,
	) (*idemkeys.Commit, error) {
		if err := s.checkOperation(ctx, op); err != nil {
			return nil, err
		}
		return resolve(ctx, op, r)
	}
	return k
}

// checkOperation returns nil for an operation of our own account. One of another account is left to
// an operator, or to that account's events. But when our account was replaced, the operation is
// left to the servers of the current one.
func (s *Store) checkOperation(ctx context.Context, op *idemkeys.Operation) error {
	number, err := accountOf(op.Params)
	if err != nil || s.own.is(number) {
		return err
	}
	theirs, ours, err := s.bothAccounts(ctx, number)
	if err != nil {
		return &idemkeys.Unresolved{
			Reason:      "the operation's account at the provider cannot be read: " + err.Error(),
			NotExecuted: true,
		}
	}
	if ours.Number == 0 {
		return &idemkeys.Unresolved{
			NotExecuted: true,
			Reason:      "it is not known whose account at the provider STRIPE_API_KEY is for; the operation was sent to " + theirs.String(),
		}
	}
	why := fmt.Sprintf(
		"the operation was sent to %s; STRIPE_API_KEY is for %s, where nothing of it is known and nothing of it may be sent",
		theirs, ours,
	)
	if !ours.Current {
		s.own.replaced.Store(true)
		return &idemkeys.Unresolved{Reason: why, NotExecuted: true}
	}
	return parked("%s", why)
}

// bothAccounts reads an operation's account and our own.
func (s *Store) bothAccounts(
	ctx context.Context, number int16,
) (theirs, ours ProviderAccount, err error) {
	all, err := s.providerAccounts(ctx)
	for _, a := range all {
		if a.Number == max(number, firstAccount) {
			theirs = a
		}
		if a.Number == s.own.get() {
			ours = a
		}
	}
	return theirs, ours, err
}

// ErrProviderAway is the [idemkeys.ErrHeld] of a provider that has not answered yet what has to be
// known of it.
var ErrProviderAway = fmt.Errorf(
	"the provider has not answered what has to be known of it: %w", idemkeys.ErrHeld,
)

// errUnknown: nothing may be sent before the account is known.
var errUnknown = fmt.Errorf(
	"it is not known yet whose account at the provider STRIPE_API_KEY is for: %w", ErrProviderAway,
)

// errReplaced: this process works for an account that the installation has left.
var errReplaced = fmt.Errorf(
	"operations are sent to another account at the provider now than the one that STRIPE_API_KEY is for; start this server anew with the new key (%w)",
	idemkeys.ErrHeld,
)

// Replaced reports whether the installation has left our account for another: an error says so. It
// asks the database, whose own errors are not told: they say nothing of it.
func (s *Store) Replaced(ctx context.Context) error {
	if current, err := s.currentAccount(ctx); err == nil {
		s.own.replaced.Store(current != s.own.get())
	}
	if s.own.replaced.Load() {
		return errReplaced
	}
	return nil
}

func (s *Store) currentAccount(ctx context.Context) (number int16, err error) {
	return db.Read0(ctx, s.pool, s.queries.ProviderAccountCurrent)
}

// checkCurrent returns nil while the installation works for our account.
func (s *Store) checkCurrent(ctx context.Context, tx db.DBTX) error {
	if s.own.get() == noAccount {
		return nil
	}
	current, err := s.queries.ProviderAccountCurrent(ctx, tx)
	if err == nil && current != s.own.get() {
		s.own.replaced.Store(true)
		err = db.Final(errReplaced)
	}
	return err
}

// Held returns the error that holds new work back: our account is not known yet, or the
// installation has left it.
func (s *Store) Held() error {
	switch {
	case s.own.get() == unknownAccount:
		return errUnknown
	case s.own.replaced.Load():
		return errReplaced
	}
	return nil
}

// orReplaced finds out whether a key could not be claimed because our account was replaced: the
// claim's statement does not say so.
func (s *Store) orReplaced(ctx context.Context, err error) error {
	if !errors.Is(err, idemkeys.ErrContended) {
		return err
	}
	if replaced := s.Replaced(ctx); replaced != nil {
		return errors.Join(idemkeys.ErrUnavailable, replaced)
	}
	return err
}

// checkChargeAccount refuses an operation on a charge of another account of the provider. param is
// what the request calls the charge.
func (s *Store) checkChargeAccount(charge db.Charge, param string) error {
	if s.own.is(numberOf(charge)) {
		return nil
	}
	return withCharge(charge, problem.ProviderAccountChanged.Of(param,
		"The charge was made at an account of the payment provider that this installation no longer uses: it can be captured and refunded there only."))
}

func numberOf(charge db.Charge) int16 {
	if charge.ProviderAccount == nil {
		return 0
	}
	return *charge.ProviderAccount
}
