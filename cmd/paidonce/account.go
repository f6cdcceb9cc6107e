package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"paidonce/charges"
	"paidonce/internal/backoff"
	"paidonce/internal/loop"
)

// askAgain sets the pauses between questions to a provider that does not answer. A server that
// cannot claim operations should notice within seconds that it can again.
var askAgain = backoff.Policy{First: time.Second, Max: 5 * time.Second}

// accountWatch is how often a server checks whether the installation has moved to another account.
// The claims are fenced anyway; the check is for the log, and for the operations that wait.
const accountWatch = 5 * time.Second

// recognise finds out which account STRIPE_API_KEY belongs to. It refuses any other than the one
// that operations were sent to.
func (a *app) recognise(ctx context.Context) error {
	r, err := a.chargeStore.Recognise(ctx, a.provider, a.cfg.live())
	if err != nil {
		return err
	}
	if r.New {
		a.log.InfoContext(ctx, "operations are sent to this account at the provider",
			"provider_account", r.Account.String())
	}
	if r.Unsure != nil {
		a.log.WarnContext(ctx, "whose account STRIPE_API_KEY is for cannot be told, and no "+
			"charge tells yet; with the right to read accounts (Account: read) it could",
			"cause", r.Unsure)
	}
	return nil
}

// recogniseOrHold does the same for a server. While the provider cannot be asked, the server serves
// what is stored and begins nothing new. If the account is refused later, refused is called with
// the reason.
func (a *app) recogniseOrHold(ctx context.Context, refused func(error)) error {
	err := a.recognise(ctx)
	if err != nil && !errors.Is(err, charges.ErrUnreachable) {
		return err
	}
	if err != nil {
		a.log.WarnContext(ctx, "nothing new is begun until the provider has told whose account "+
			"STRIPE_API_KEY is for; what is stored is served", "cause", err)
	}
	a.closers = append(a.closers, loop.Start(ctx, func(ctx context.Context) {
		if err == nil || a.recogniseLater(ctx, refused) {
			a.watchAccount(ctx)
		}
	}))
	return nil
}

// recogniseLater asks until there is an answer. It returns false if the account was refused or ctx
// has ended.
func (a *app) recogniseLater(ctx context.Context, refused func(error)) bool {
	for asked := 1; backoff.Sleep(ctx, askAgain.After(asked)); asked++ {
		switch err := a.recognise(ctx); {
		case err == nil:
			a.log.InfoContext(ctx, "the provider has told whose account STRIPE_API_KEY is for: "+
				"charges are taken")
			return true
		case errors.As(err, new(*charges.OtherAccountError)),
			errors.As(err, new(*charges.UnconfirmedAccountError)),
			errors.As(err, new(*charges.MissingRightError)):
			refused(err)
			return false
		}
	}
	return false
}

// watchAccount logs when the installation moves to another account than ours.
func (a *app) watchAccount(ctx context.Context) {
	reported := false
	loop.Every(ctx, accountWatch, func(ctx context.Context) {
		err := a.chargeStore.Replaced(ctx)
		if err != nil && !reported {
			a.log.ErrorContext(ctx, "nothing new is begun", "cause", err)
		}
		reported = err != nil
	})
}

// mustRecognise is recognise for a command that can do nothing without the provider.
func (a *app) mustRecognise(ctx context.Context, command string) error {
	if err := a.recognise(ctx); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// senderMark returns a mark that is the same for the same credentials and address. It reveals
// nothing else of them: it is eight bytes of a hash over a key that cannot be guessed. Each
// operation stores its mark, so it is short.
func senderMark(installation string, cfg *config) string {
	sum := sha256.Sum256([]byte(installation + "\x00" + cfg.StripeAPIKey + "\x00" +
		cfg.StripeAPIBase))
	return hex.EncodeToString(sum[:8])
}
