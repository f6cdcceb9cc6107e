package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"paidonce/charges"
)

const (
	// A provider that cannot be asked is asked again after a second, then less and less often: a server that
	// cannot claim should notice within seconds that it could.
	askAgainFirst = time.Second
	askAgainMax   = 5 * time.Second
	// accountWatch is how often a server looks whether the installation has moved to another account. The
	// claims themselves are fenced; this is for its log, and for the operations that wait.
	accountWatch = 5 * time.Second
)

// recognise finds out whose account STRIPE_API_KEY is for, and refuses another than the one that operations
// were sent to.
func (a *app) recognise(ctx context.Context) error {
	r, err := a.chargeStore.Recognise(ctx, a.provider, a.livemode)
	if err != nil {
		return err
	}
	if r.New {
		a.log.InfoContext(ctx, "operations are sent to this account at the provider", "provider_account", r.Account.String())
	}
	if r.Unsure != nil {
		a.log.WarnContext(ctx, "whose account STRIPE_API_KEY is for cannot be told, and no charge tells yet; with the right to read accounts (Account: read) it could", "cause", r.Unsure)
	}
	return nil
}

// recogniseOrHold is recognise for a server: one that cannot ask the provider starts, serves what is stored,
// and begins nothing until it can. refused hears of a refusal that comes then.
func (a *app) recogniseOrHold(ctx context.Context, refused func(error)) error {
	err := a.recognise(ctx)
	if err != nil && !errors.Is(err, charges.ErrUnreachable) {
		return err
	}
	if err != nil {
		a.log.WarnContext(ctx, "nothing new is begun until the provider has told whose account STRIPE_API_KEY is for; what is stored is served", "cause", err)
	}
	var working sync.WaitGroup
	a.closers = append(a.closers, working.Wait)
	working.Go(func() {
		if err != nil && !a.recogniseLater(ctx, refused) {
			return
		}
		a.watchAccount(ctx)
	})
	return nil
}

// recogniseLater asks until there is an answer. false: it was refused, or ctx has ended.
func (a *app) recogniseLater(ctx context.Context, refused func(error)) bool {
	for pause := askAgainFirst; ; pause = min(2*pause, askAgainMax) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
		switch err := a.recognise(ctx); {
		case err == nil:
			a.log.InfoContext(ctx, "the provider has told whose account STRIPE_API_KEY is for: charges are taken")
			return true
		case errors.As(err, new(*charges.OtherAccountError)), errors.As(err, new(*charges.UntoldError)), errors.As(err, new(*charges.MissingRightError)):
			refused(err)
			return false
		}
	}
}

// watchAccount says when the installation has left our account, and when it has come back.
func (a *app) watchAccount(ctx context.Context) {
	told := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(accountWatch):
		}
		err := a.chargeStore.Replaced(ctx)
		if err != nil && !told {
			a.log.ErrorContext(ctx, "nothing new is begun", "cause", err)
		}
		told = err != nil
	}
}

// mustRecognise is for commands that do nothing without the provider.
func (a *app) mustRecognise(ctx context.Context, command string) error {
	if err := a.recognise(ctx); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// senderMark tells one pair of credentials and address from another, and nothing else of them: eight bytes
// of a hash, of a key that cannot be guessed. It is kept with each operation, so it is short.
func senderMark(installation string, cfg *config) string {
	sum := sha256.Sum256([]byte(installation + "\x00" + cfg.StripeAPIKey + "\x00" + cfg.StripeAPIBase))
	return hex.EncodeToString(sum[:8])
}
