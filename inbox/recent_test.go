package inbox

import (
	"testing"
	"time"

	"github.com/stripe/stripe-go/v76/webhook"
)

// A delivery's age is told by the provider's own clock, or by this machine's: with a machine that
// is ten minutes off provider events gets in all the same, and what is old by both stays out.
func TestSignaturesOfAnotherClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{
		-time.Hour, -7 * time.Minute, 0, 7 * time.Minute, time.Hour,
	} {
		i := New(
			Config{
				Secrets: []string{"whsec_1"},
				Now:     func() (time.Time, bool) { return time.Now().Add(ahead), true },
			},
		)
		for _, c := range []struct {
			age  time.Duration // by the provider's clock
			good bool
		}{
			{0, true}, {4 * time.Minute, true}, {20 * time.Minute, false},
			{-20 * time.Minute, false},
		} {
			at := time.Now().Add(ahead - c.age)
			signed := webhook.GenerateTestSignedPayload(
				&webhook.UnsignedPayload{Payload: []byte("{}"), Secret: "whsec_1", Timestamp: at},
			)
			if refused := i.verify(signed.Payload, signed.Header); (refused == "") != c.good {
				t.Errorf(
					"the provider's clock is %v ahead, the delivery %v old: %q", ahead, c.age,
					refused,
				)
			}
			if i.verify([]byte("{ }"), signed.Header) == "" {
				t.Error("another body is taken")
			}
		}
	}
	// Before its first answer the provider has told no time.
	i := New(
		Config{
			Secrets: []string{"whsec_1"},
			Now:     func() (time.Time, bool) { return time.Time{}, false },
		},
	)
	signed := webhook.GenerateTestSignedPayload(
		&webhook.UnsignedPayload{Payload: []byte("{}"), Secret: "whsec_1", Timestamp: time.Now()},
	)
	if refused := i.verify(signed.Payload, signed.Header); refused != "" {
		t.Error(refused)
	}
}
