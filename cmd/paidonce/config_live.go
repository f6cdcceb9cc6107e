package main

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// live reports whether the provider's key moves real money.
func (c *config) live() bool {
	return strings.HasPrefix(c.StripeAPIKey, "sk_live_") ||
		strings.HasPrefix(c.StripeAPIKey, "rk_live_")
}

// checkLive refuses settings for development when real money is moved.
func (c *config) checkLive(bad reporter) {
	if !c.live() {
		return
	}
	// This holds on this machine, too: who listens there may change, and every request carries the
	// key.
	if strings.HasPrefix(strings.ToLower(c.StripeAPIBase), "http://") {
		bad("STRIPE_API_BASE", "must be https when STRIPE_API_KEY is live")
	}
	if c.AllowPrivate {
		bad("PAIDONCE_WEBHOOK_ALLOW_PRIVATE", "must not be true when STRIPE_API_KEY is live: "+
			"webhooks could be aimed at what only this machine can reach")
	}
}

// retryHabit is how long clients may count on a key. Stripe keeps keys for as long, and clients are
// written for that.
const retryHabit = 24 * time.Hour

// warnLive warns of settings that are allowed with a live key, but risky.
func (c *config) warnLive(log *slog.Logger) {
	if !c.live() {
		return
	}
	if c.KeyTTL < retryHabit {
		log.Warn("PAIDONCE_KEY_TTL is shorter than 24h: a client that retries later than that " +
			"charges anew")
	}
	if slices.Contains(c.CORSOrigins, "*") {
		log.Warn("PAIDONCE_CORS_ORIGINS is *: scripts of any site may call the API with a key " +
			"that they have got hold of")
	}
	if at, err := netip.ParseAddrPort(c.Listen); err == nil && at.Addr().IsGlobalUnicast() &&
		!at.Addr().IsPrivate() {
		log.Warn("PAIDONCE_LISTEN is a public address, and no TLS is spoken there: API keys can " +
			"be read on their way")
	}
}

// warnServing warns of what a server with these settings cannot do.
func (c *config) warnServing(log *slog.Logger) {
	if len(c.StripeWebhookSecrets) > 0 {
		return
	}
	switch {
	case slices.Contains(c.workers, "inbox"):
		log.Warn("PAIDONCE_WORKERS has inbox, and STRIPE_WEBHOOK_SECRET is not set: no events of " +
			"the provider are taken, so the inbox gets no work")
	case c.live():
		log.Warn("STRIPE_WEBHOOK_SECRET is not set: what happens at the provider by itself, such " +
			"as disputes, is not learnt")
	}
}
