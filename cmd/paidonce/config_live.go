package main

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// live reports whether the key of the provider moves real money.
func (c *config) live() bool {
	return strings.HasPrefix(c.StripeAPIKey, "sk_live_") || strings.HasPrefix(c.StripeAPIKey, "rk_live_")
}

// checkLive refuses what is for development where real money is moved.
func (c *config) checkLive(bad reporter) {
	if !c.live() {
		return
	}
	// Also on this machine: who listens there may change, and the key is in every request.
	if strings.HasPrefix(strings.ToLower(c.StripeAPIBase), "http://") {
		bad("STRIPE_API_BASE", "must be https when STRIPE_API_KEY is live")
	}
	if c.AllowPrivate {
		bad("PAIDONCE_WEBHOOK_ALLOW_PRIVATE", "must not be true when STRIPE_API_KEY is live: webhooks could be aimed at what only this machine can reach")
	}
}

// retryHabit is how long clients may count on a key: Stripe keeps keys for as long, and clients are made for that.
const retryHabit = 24 * time.Hour

// warnLive tells what is allowed with a live key, and risky.
func (c *config) warnLive(log *slog.Logger) {
	if !c.live() {
		return
	}
	if c.KeyTTL < retryHabit {
		log.Warn("PAIDONCE_KEY_TTL is shorter than 24h: a client that retries later than that charges anew")
	}
	if slices.Contains(c.CORSOrigins, "*") {
		log.Warn("PAIDONCE_CORS_ORIGINS is *: scripts of any site may call the API with a key that they have got hold of")
	}
	if at, err := netip.ParseAddrPort(c.Listen); err == nil && at.Addr().IsGlobalUnicast() && !at.Addr().IsPrivate() {
		log.Warn("PAIDONCE_LISTEN is a public address, and no TLS is spoken there: API keys can be read on their way")
	}
}

// warnServing tells what a server cannot do as it is set up.
func (c *config) warnServing(log *slog.Logger) {
	if len(c.StripeWebhookSecrets) > 0 {
		return
	}
	switch {
	case slices.Contains(c.workers, "inbox"):
		log.Warn("PAIDONCE_WORKERS has inbox, and STRIPE_WEBHOOK_SECRET is not set: no events of the provider are taken, so the inbox gets no work")
	case c.live():
		log.Warn("STRIPE_WEBHOOK_SECRET is not set: what happens at the provider by itself, such as disputes, is not learnt")
	}
}
