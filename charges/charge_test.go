package charges_test

import (
	"testing"

	"paidonce/charges"
)

// What a mail server would not take, or what looks like another address than it is, is not taken
// for one.
func TestReceiptEmail(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"jenny@example.com": true, "jenny.rosen+shop@sub.example.com": true,
		"jürgen@bücher.example": true, "o'brien@example.com": true, "jenny": false,
		"Jenny <jenny@example.com>": false, "a@example.com, b@example.com": false,
		"jenny@example.com\r\nBcc: all@example.com": false, "jenny@exa\u2028mple.com": false,
		"jenny\u202e@example.com": false, "jenny@example.com\u200f": false,
		"jen\x00ny@example.com": false, "jenny\u00a0@example.com": false,
	} {
		p := charges.Params{
			Amount: 100, Currency: "usd", Source: "tok_visa", Capture: true, ReceiptEmail: address,
		}
		if err := p.Validate(); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
}
