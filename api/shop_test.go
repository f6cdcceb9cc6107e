package api_test

import (
	"testing"
	"time"

	"paidonce/api/apitest"
	online "paidonce/internal/shop"
	"paidonce/internal/world"
)

// whsec signs what the provider sends to a shop's first server.
const whsec = world.Secret

// shop is the product behind a socket, with a database and a simulated provider of its own.
type shop struct{ *online.Shop }

func newShop(t *testing.T) *shop {
	t.Helper()
	return &shop{online.New(world.New(t))}
}

// newShopWith is newShop with another limit for calls of the provider.
func newShopWith(t *testing.T, limit time.Duration) *shop {
	t.Helper()
	return &shop{online.New(world.NewWith(t, limit))}
}

func created(t *testing.T, a apitest.Answer) { t.Helper(); apitest.Created(t, a) }

func same(t *testing.T, first, second apitest.Answer) { t.Helper(); apitest.Replays(t, first, second) }

func wants(t *testing.T, a apitest.Answer, status int, code, param string) {
	t.Helper()
	apitest.Wants(t, a, status, code, param)
}
