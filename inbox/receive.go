package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stripe/stripe-go/v76/webhook"
)

// Errors of Receive.
var (
	// ErrSignature: not signed by any of our secrets, or not at this time. Nothing is stored.
	ErrSignature = errors.New("the signature does not match")
	// ErrMalformed: signed, but not an event. Nothing is stored.
	ErrMalformed = errors.New("the body is not an event")
)

const (
	// tolerance is how far a signature's time may lie from ours, in either direction: Stripe's own value, against replays of captured deliveries.
	tolerance = 300 * time.Second
	// storeWait is how long a delivery waits for the database; the provider gives up after some ten seconds, and comes again.
	storeWait = 5 * time.Second
)

var eventID = regexp.MustCompile(`^[A-Za-z0-9_]{1,255}$`)

// Receive verifies a delivery on its raw bytes and stores it. After it returned nil the event is durable; a repeated delivery is nil as well. Errors:
// [ErrSignature], [ErrMalformed]; anything else is the database's, and the provider should come again.
func (i *Inbox) Receive(ctx context.Context, body []byte, signature string) error {
	if err := i.verify(body, signature); err != nil {
		return err
	}
	e, err := parse(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	if _, _, err := i.store.Do(ctx, e); err != nil {
		return err
	}
	select {
	case i.arrived <- struct{}{}:
	default: // a worker is told already
	}
	return nil
}

// verify accepts any of the secrets, so that one can be replaced without a gap. The time is looked at here: the library takes any in the future, and
// knows this machine's clock alone.
func (i *Inbox) verify(body []byte, signature string) error {
	at, err := signedAt(signature)
	if err != nil || !i.recent(at) {
		return ErrSignature
	}
	for _, secret := range i.cfg.Secrets {
		if webhook.ValidatePayloadIgnoringTolerance(body, signature, secret) == nil {
			return nil
		}
	}
	return ErrSignature
}

// recent tells that a delivery was signed just now: by the provider's own clock, as its last answer told it, or by this machine's. Either may be
// wrong by minutes, this one without NTP, that one after the machine has slept.
func (i *Inbox) recent(at time.Time) bool {
	if i.cfg.Now != nil {
		if now, ok := i.cfg.Now(); ok && at.Sub(now).Abs() <= tolerance {
			return true
		}
	}
	return time.Since(at).Abs() <= tolerance //tidy:clock a signature's time is the outside world's
}

// signedAt reads t of a header such as t=1492774577,v1=5257a8….
func signedAt(header string) (time.Time, error) {
	for part := range strings.SplitSeq(header, ",") {
		if name, value, _ := strings.Cut(part, "="); name == "t" {
			seconds, err := strconv.ParseInt(value, 10, 64)
			return time.Unix(seconds, 0), err
		}
	}
	return time.Time{}, ErrSignature
}

// parse reads the few fields that say where an event belongs, of whatever API version. The body is kept as it came.
func parse(body []byte) (Event, error) {
	var in struct {
		ID       string `json:"id"`
		Object   string `json:"object"`
		Type     string `json:"type"`
		Livemode bool   `json:"livemode"`
		Data     struct {
			Object struct {
				ID string `json:"id"`
			} `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Object != "event" || !eventID.MatchString(in.ID) || !storable(in.Type) || in.Type == "" || !storable(in.Data.Object.ID) {
		return Event{}, ErrMalformed
	}
	return Event{ID: in.ID, Type: in.Type, ObjectID: in.Data.Object.ID, Livemode: in.Livemode, Payload: body}, nil
}

// storable: what a text column takes, and no more than an id or a type needs.
func storable(s string) bool {
	return utf8.RuneCountInString(s) <= 255 && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}
