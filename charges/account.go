package charges

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
)

// An operation belongs to the account at the provider that it was sent to. Its charge names it, and so do
// its frozen parameters: no other account is asked about it, nor sent anything of it.

// ProviderAccount is an account at the provider, in one of its modes, that this installation works or has
// worked with.
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

// String names the account to a person.
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

// own is the account that this process's credentials are for, by its number: unasked where nobody asks,
// unknown until it is known.
type own struct {
	number   atomic.Int32
	replaced atomic.Bool // it is no longer the installation's current one
	untold   atomic.Bool // nothing speaks against that account, and nothing for it
	sender   string      // marks our credentials
}

// mark is what is frozen of our credentials: nothing, once it is told whose they are.
func (o *own) mark() string {
	if o.untold.Load() {
		return o.sender
	}
	return ""
}

const (
	unasked = 0
	unknown = -1
	// firstAccount is the number of the account that charges without one belong to.
	firstAccount = 1
)

// mine reports whether what was sent to this account is ours to send and to ask about. 0 is the first account.
func (o *own) mine(number int16) bool {
	ours := o.account()
	if ours == unasked {
		return number == 0
	}
	return max(number, firstAccount) == ours
}

func (o *own) account() int16 { return int16(o.number.Load()) } //nolint:gosec // was one

// NeedAccount lets nothing be sent, and nobody be asked, before [Store.Recognise] has told for whom. sender
// marks our credentials, and where they are sent to; it is no secret. Call it before the store is used.
func (s *Store) NeedAccount(sender string) {
	s.own.sender = sender
	s.own.number.Store(unknown)
}

// accountOf reads the account out of what is frozen of an operation of any kind.
func accountOf(params []byte) (int16, error) {
	f, err := thaw[struct {
		Account int16 `json:"account"`
		Request struct {
			Account int16 `json:"account"`
		} `json:"request"`
	}](params)
	return max(f.Account, f.Request.Account), err
}

// guarded is a kind whose phases never see an operation of another account than ours.
func (s *Store) guarded(k idemkeys.Kind) idemkeys.Kind {
	for point, phase := range k.Phases {
		k.Phases[point] = func(ctx context.Context, op idemkeys.Operation) (idemkeys.Commit, error) {
			if op.Attempts > 1 { // the first is made by the process that claimed it
				if err := s.ours(ctx, op); err != nil {
					return idemkeys.Commit{}, err
				}
			}
			return phase(ctx, op)
		}
	}
	resolve := k.Resolve
	k.Resolve = func(ctx context.Context, op idemkeys.Operation, r idemkeys.Resolution) (idemkeys.Commit, error) {
		if r.Evidence == nil { // else nobody is asked
			if err := s.ours(ctx, op); err != nil {
				return idemkeys.Commit{}, err
			}
		}
		return resolve(ctx, op, r)
	}
	return k
}

// ours is nil for an operation of our own account. One of another account is for a person, or for that
// account's news. But when it is our account that was replaced, the operation is left to those who work
// for the current one.
func (s *Store) ours(ctx context.Context, op idemkeys.Operation) error {
	number, err := accountOf(op.Params)
	if err != nil || s.own.mine(number) {
		return err
	}
	theirs, ours, err := s.bothAccounts(ctx, number)
	if err != nil {
		return &idemkeys.Unresolved{Reason: "the operation's account at the provider cannot be read: " + err.Error(), NotExecuted: true}
	}
	if ours.Number == 0 {
		return &idemkeys.Unresolved{NotExecuted: true, Reason: "it is not known whose account at the provider STRIPE_API_KEY is for; the operation was sent to " + theirs.String()}
	}
	why := fmt.Sprintf("the operation was sent to %s; STRIPE_API_KEY is for %s, where nothing of it is known and nothing of it may be sent", theirs, ours)
	if !ours.Current {
		s.own.replaced.Store(true)
		return &idemkeys.Unresolved{Reason: why, NotExecuted: true}
	}
	return parked("%s", why)
}

// bothAccounts reads an operation's account and our own.
func (s *Store) bothAccounts(ctx context.Context, number int16) (theirs, ours ProviderAccount, err error) {
	all, err := s.providerAccounts(ctx)
	for _, a := range all {
		if a.Number == max(number, firstAccount) {
			theirs = a
		}
		if a.Number == s.own.account() {
			ours = a
		}
	}
	return theirs, ours, err
}

// errUnknown: nothing may be sent before the account is known.
var errUnknown = fmt.Errorf("it is not known yet whose account at the provider STRIPE_API_KEY is for: %w", idemkeys.ErrProviderAway)

// errReplaced: this process works for an account that the installation has left.
var errReplaced = fmt.Errorf("operations are sent to another account at the provider now than the one that STRIPE_API_KEY is for; start this server anew with the new key (%w)", idemkeys.ErrHeld)

// Replaced reports whether the installation has left our account for another: an error says so. It asks the
// database, whose own errors are not told: they say nothing of it.
func (s *Store) Replaced(ctx context.Context) error {
	if current, err := s.currentAccount(ctx); err == nil {
		s.own.replaced.Store(current != s.own.account())
	}
	if s.own.replaced.Load() {
		return errReplaced
	}
	return nil
}

func (s *Store) currentAccount(ctx context.Context) (number int16, err error) {
	err = db.Retry(ctx, func(ctx context.Context) (err error) {
		number, err = s.queries.ProviderAccountCurrent(ctx, s.pool)
		return err
	})
	return number, err
}

// stillCurrent is nil while the installation works for our account.
func (s *Store) stillCurrent(ctx context.Context, tx db.DBTX) error {
	if s.own.account() == unasked {
		return nil
	}
	current, err := s.queries.ProviderAccountCurrent(ctx, tx)
	if err == nil && current != s.own.account() {
		s.own.replaced.Store(true)
		err = db.Final(errReplaced)
	}
	return err
}

// Held is the error that holds new work back: nobody knows yet whom we work for, or the installation has
// left that account.
func (s *Store) Held() error {
	switch {
	case s.own.account() == unknown:
		return errUnknown
	case s.own.replaced.Load():
		return errReplaced
	}
	return nil
}

// unlessReplaced tells a key that may not be claimed because of its API key from one that nobody of our
// account may claim any more: the claim's statement tells neither.
func (s *Store) unlessReplaced(ctx context.Context, res idemkeys.Result, err error) (idemkeys.Result, error) {
	if !errors.Is(err, idemkeys.ErrNotClaimable) {
		return res, err
	}
	if replaced := s.Replaced(ctx); replaced != nil {
		return res, errors.Join(idemkeys.ErrUnavailable, replaced)
	}
	return res, err
}

// atOurAccount refuses an operation on a charge of another account of the provider.
func (s *Store) atOurAccount(charge db.Charge) error {
	if s.own.mine(numberOf(charge)) {
		return nil
	}
	return about(charge, refuse(http.StatusBadRequest, "provider_account_changed", "charge",
		"The charge was made at an account of the payment provider that this installation no longer uses: it can be captured and refunded there only."))
}

func numberOf(charge db.Charge) int16 {
	if charge.ProviderAccount == nil {
		return 0
	}
	return *charge.ProviderAccount
}
