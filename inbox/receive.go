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
	// tolerance is how far a signature's time may lie from ours, in either direction (the library takes any time in the future): Stripe's own value, against
	// replays of captured deliveries.
	tolerance = 300 * time.Second
	// storeWait is how long a delivery waits for the database; the provider gives up after some ten seconds, and comes again.
	storeWait = 5 * time.Second
)

var eventID = regexp.MustCompile(`^[A-Za-z0-9_]{1,255}$`)

// Expects looks at the lines of the signature's header, before anything of a body is read for them: exactly one, of the right form, and of this time. Whether it
// was one of our secrets that signed, only the body tells. Errors: [ErrSignature].
func (i *Inbox) Expects(lines []string) error {
	if len(lines) != 1 {
		return i.refuse(refusedHeader)
	}
	if refused := i.checkHeader(lines[0]); refused != "" {
		return i.refuse(refused)
	}
	return nil
}

// Receive verifies a delivery on its raw bytes and stores it. After it returned nil the event is durable; a repeated delivery is nil as well. Errors:
// [ErrSignature], [ErrMalformed]; anything else is the database's, and the provider should come again.
func (i *Inbox) Receive(ctx context.Context, body []byte, signature string) error {
	if refused := i.verify(body, signature); refused != "" {
		return i.refuse(refused)
	}
	e, err := parse(body)
	if err != nil {
		return err
	}
	e.keep = true
	if i.cfg.Sift != nil {
		e.keep, e.done = i.cfg.Sift(e.Type, body)
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

// refuse counts a signature that does not count, and is the error for it.
func (i *Inbox) refuse(why string) error {
	if i.cfg.Refused != nil {
		i.cfg.Refused(why)
	}
	return ErrSignature
}

// recent reports whether a delivery was signed just now: by the provider's own clock, as its last answer told it, or by this machine's. Either may be
// wrong by minutes, this one without NTP, that one after the machine has slept.
func (i *Inbox) recent(at time.Time) bool {
	if i.cfg.Now != nil {
		if now, ok := i.cfg.Now(); ok && at.Sub(now).Abs() <= tolerance {
			return true
		}
	}
	return time.Since(at).Abs() <= tolerance //tidy:clock a signature's time is the outside world's
}

// verify accepts any of the secrets, so that one can be replaced without a gap. It tells why a signature is refused; nothing when it is not.
func (i *Inbox) verify(body []byte, signature string) (refused string) {
	if refused = i.checkHeader(signature); refused != "" {
		return refused
	}
	for _, secret := range i.cfg.Secrets {
		if webhook.ValidatePayloadIgnoringTolerance(body, signature, secret) == nil { // its time is looked at above
			return ""
		}
	}
	return refusedMismatch
}

// Why signatures are refused, for who counts them.
const (
	refusedHeader   = "header"   // no header, several, or not of the form
	refusedTime     = "time"     // too old, or of the future
	refusedMismatch = "mismatch" // none of our secrets signed this body
)

// RefusedReasons are all that Config.Refused may be told.
var RefusedReasons = []string{refusedHeader, refusedTime, refusedMismatch}

// partsMax bounds a header's parts: the provider sends one signature for each secret that is valid, which are two while one is replaced.
const partsMax = 32

var (
	unixSeconds = regexp.MustCompile(`^[0-9]{1,12}$`)
	hexSHA256   = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
)

// checkHeader looks at a header such as t=1492774577,v1=5257a8…: name=value with commas, exactly one time, at least one signature that could be one; names of
// other schemes say nothing to us. It tells why it is refused; nothing when it is not.
func (i *Inbox) checkHeader(header string) (refused string) {
	var times, signatures int
	var at time.Time
	if strings.Count(header, ",") >= partsMax {
		return refusedHeader
	}
	for part := range strings.SplitSeq(header, ",") {
		name, value, isPair := strings.Cut(part, "=")
		switch {
		case !isPair, name == "t" && !unixSeconds.MatchString(value):
			return refusedHeader
		case name == "t":
			times++
			seconds, _ := strconv.ParseInt(value, 10, 64) // digits only, and few enough
			at = time.Unix(seconds, 0)
		case name == "v1" && hexSHA256.MatchString(value):
			signatures++
		}
	}
	switch {
	case times != 1 || signatures == 0:
		return refusedHeader
	case !i.recent(at):
		return refusedTime
	}
	return ""
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
