package main

import "time"

// A payer needs a minute to be sent to the bank and to authenticate there; after a month nobody
// comes back for an order.
const (
	leastPayerWindow = time.Minute
	mostPayerWindow  = 30 * 24 * time.Hour
)

func (c *config) checkPayer(bad reporter) {
	if c.PayerWindow < leastPayerWindow || c.PayerWindow > mostPayerWindow {
		bad("PAIDONCE_PAYER_WINDOW", "must be from 1m to 720h, such as 23h")
	}
}
