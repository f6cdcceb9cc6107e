package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stripe/stripe-go/v76/webhook"
)

// ErrSignature says that a body is not signed by any of our secrets, or not at this time. Nothing
// is stored.
var ErrSignature = errors.New("the signature does not match")

const (
	// tolerance is how far a signature's time may lie from ours, in either direction (the library
	// takes any time in the future): Stripe's own value, against replays of captured deliveries.
	tolerance = 300 * time.Second
	// storeWait is how long a delivery waits for the database; the provider gives up after some ten
	// seconds, and comes again.
	storeWait = 5 * time.Second
)

var eventID = regexp.MustCompile(`^[A-Za-z0-9_]{1,255}$`)

// Expects looks at the lines of the signature's header, before anything of a body is read for them:
// exactly one, of the right form, and of this time. Only the body shows whether one of our secrets
// signed it. Errors: [ErrSignature].
func (i *Inbox) Expects(lines []string) error {
	if len(lines) != 1 {
		return i.refuse(refusedHeader)
	}
	if refused := i.checkHeader(lines[0]); refused != "" {
		return i.refuse(refused)
	}
	return nil
}

// Receive verifies a delivery on its raw bytes and stores it, whatever its shape: a provider that
// is refused sends the same for days, and then disables the endpoint for all. What cannot be read
// is parked. After Receive returned nil the event is durable; a repeated delivery is nil as well.
// Errors: [ErrSignature]; anything else is the database's, and the provider should come again.
func (i *Inbox) Receive(ctx context.Context, body []byte, signature string) error {
	if refused := i.verify(body, signature); refused != "" {
		return i.refuse(refused)
	}
	d := i.delivered(ctx, body)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	if _, _, err := i.store.Do(ctx, d); err != nil {
		return err
	}
	select {
	case i.arrived <- struct{}{}:
	default: // a worker is notified already
	}
	return nil
}

// delivered is what is stored of a body that is signed.
func (i *Inbox) delivered(ctx context.Context, body []byte) delivery {
	e, unreadable := parse(body)
	d := delivery{Event: e, keepPayload: true, unreadable: unreadable}
	if i.cfg.Sift != nil && e.Type != noType {
		d.keepPayload, d.result = i.cfg.Sift(e.Type, body)
	}
	switch {
	case d.result != Result{}: // whatever else may be odd about it, it changes nothing here
		d.unreadable = ""
	case unreadable != "":
		d.keepPayload = true
		i.cfg.Log.ErrorContext(
			ctx, "an event of the provider cannot be read: it is parked, and an operator has to look",
			"event_id", e.ID, "type", e.Type, "reason", unreadable,
		)
	}
	return d
}

// refuse counts a refused signature, and returns the error for it.
func (i *Inbox) refuse(why string) error {
	if i.cfg.Refused != nil {
		i.cfg.Refused(why)
	}
	return ErrSignature
}

// signedNow reports whether a delivery was signed just now: by the provider's own clock, as its
// last answer told it, or by this machine's. Either may be wrong by minutes, this one without NTP,
// that one after the machine has slept.
func (i *Inbox) signedNow(at time.Time) bool {
	if i.cfg.Now != nil {
		if now, ok := i.cfg.Now(); ok && at.Sub(now).Abs() <= tolerance {
			return true
		}
	}
	return time.Since(at).Abs() <= tolerance //tidy:clock a signature's time is the outside world's
}

// verify accepts any of the secrets, so that one can be replaced without a gap. It returns why a
// signature is refused, or "".
func (i *Inbox) verify(body []byte, signature string) (refused string) {
	if refused = i.checkHeader(signature); refused != "" {
		return refused
	}
	for _, secret := range i.cfg.Secrets {
		// its time is looked at above
		if webhook.ValidatePayloadIgnoringTolerance(body, signature, secret) == nil {
			return ""
		}
	}
	return refusedMismatch
}

// Why signatures are refused, for whoever counts them.
const (
	refusedHeader   = "header"   // no header, several, or not of the form
	refusedTime     = "time"     // too old, or of the future
	refusedMismatch = "mismatch" // none of our secrets signed this body
)

// RefusedReasons are all reasons that Config.Refused may get.
var RefusedReasons = []string{refusedHeader, refusedTime, refusedMismatch}

// partsMax bounds a header's parts: the provider sends one signature for each secret that is valid,
// which are two while one is replaced.
const partsMax = 32

var (
	unixSeconds = regexp.MustCompile(`^[0-9]{1,12}$`)
	hexSHA256   = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
)

// checkHeader looks at a header such as t=1492774577,v1=5257a8…: name=value with commas, exactly
// one time, at least one signature that could be one; names of other schemes say nothing to us. It
// returns why the header is refused, or "".
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
	case !i.signedNow(at):
		return refusedTime
	}
	return ""
}

// noType stands in for the type of an event whose own cannot be read.
const noType = "unreadable"

// lenient reads what a strict reader refuses as a whole for the sake of one odd member: names that
// occur twice, of which the last counts, and text that is not UTF-8.
var lenient = json.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
)

// parse reads the few fields that say where an event belongs, of whatever API version. The body is
// kept as it came. unreadable says why it is not known what an event is about. A body without an id
// gets one that is derived from its bytes, so that a second delivery of it is still recognised.
//
// A missing object is not unreadable: whoever processes the event notes that it has none.
func parse(body []byte) (e Event, unreadable string) {
	var in struct {
		ID       jsontext.Value `json:"id"`
		Object   jsontext.Value `json:"object"`
		Type     jsontext.Value `json:"type"`
		Livemode jsontext.Value `json:"livemode"`
		Data     jsontext.Value `json:"data"`
	}
	if json.Unmarshal(body, &in, lenient) != nil {
		unreadable = "the body is not a JSON object"
		in.ID, in.Object, in.Type, in.Livemode, in.Data = nil, nil, nil, nil, nil
	}
	e = Event{ID: textIn(in.ID), Type: textIn(in.Type), ObjectID: objectIn(in.Data), Payload: body}
	livemode, odd := flagIn(in.Livemode)
	e.Livemode = livemode
	switch object := textIn(in.Object); {
	case unreadable != "":
	case !eventID.MatchString(e.ID):
		unreadable = "its id is not one"
	case object != "event" && object != "v2.core.event":
		unreadable = "it does not say that it is an event"
	case e.Type == "":
		unreadable = "its type is not one"
	case odd:
		unreadable = "its livemode is neither true nor false"
	}
	if !eventID.MatchString(e.ID) {
		sum := sha256.Sum256(body)
		e.ID = "unreadable_" + hex.EncodeToString(sum[:16])
	}
	if e.Type == "" {
		e.Type = noType
	}
	return e, unreadable
}

// objectIn returns the id of the object that an event is about; "" if it names none.
func objectIn(data jsontext.Value) string {
	var in struct {
		Object jsontext.Value `json:"object"`
	}
	var object struct {
		ID jsontext.Value `json:"id"`
	}
	if json.Unmarshal(data, &in, lenient) != nil ||
		json.Unmarshal(in.Object, &object, lenient) != nil {
		return ""
	}
	return textIn(object.ID)
}

// textIn returns a text that can be stored; "" for anything else.
func textIn(v jsontext.Value) (s string) {
	if v.Kind() != '"' || json.Unmarshal(v, &s, lenient) != nil || !storableText(s) {
		return ""
	}
	return s
}

// flagIn reads a flag, written as text too, as some imitations of the provider do. One that is
// missing is false.
func flagIn(v jsontext.Value) (on, odd bool) {
	switch string(v) {
	case "true", `"true"`:
		return true, false
	case "false", `"false"`, "null", "":
		return false, false
	}
	return false, true
}

// storableText reports whether a text column takes s, and s is no longer than ids and types are.
func storableText(s string) bool {
	return utf8.RuneCountInString(s) <= 255 && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}
