package paidonce

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Event is something that happened: Paidonce delivers it, and [Client.Events] lists it.
type Event struct {
	// Deliveries may be repeated: skip an event whose id you have stored.
	ID       string `json:"id"`
	Type     string `json:"type"`
	Created  int64  `json:"created"`
	Livemode bool   `json:"livemode"`
	Sequence int    `json:"sequence"` // of the events of one object, from 1 without gaps
	Data     struct {
		Object json.RawMessage `json:"object"` // a Charge or a Refund
	} `json:"data"`
}

// ErrSignature: the delivery is not from Paidonce, was changed, or is too old. Answer 400 and
// ignore it.
var ErrSignature = errors.New("paidonce: the signature of the delivery does not match")

// webhookTolerance is how far a delivery's time may be from ours, in the past or the future: the
// same as in the libraries of Standard Webhooks.
const webhookTolerance = 5 * time.Minute

// VerifyWebhook checks a delivery and returns its event. The body must be the bytes as they
// arrived. The secrets are the endpoint's (whsec_…), several while one is being replaced. It
// returns [ErrSignature] for a delivery that is not authentic, and another error, for any delivery,
// if a secret is malformed or none is given: an empty one would let everybody sign.
func VerifyWebhook(body []byte, h http.Header, secrets ...string) (*Event, error) {
	return verifyWebhook(body, h, time.Now(), secrets)
}

func verifyWebhook(body []byte, h http.Header, now time.Time, secrets []string) (*Event, error) {
	keys, err := webhookKeys(secrets)
	if err != nil {
		return nil, err
	}
	id, timestamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	sent, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" {
		return nil, fmt.Errorf("%w: a header is missing", ErrSignature)
	}
	if now.Sub(time.Unix(sent, 0)).Abs() > webhookTolerance {
		return nil, fmt.Errorf("%w: it is too old, or of the future", ErrSignature)
	}
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
		if signedWith(h.Get("webhook-signature"), mac.Sum(nil)) {
			e := new(Event)
			return e, json.Unmarshal(body, e)
		}
	}
	return nil, ErrSignature
}

func webhookKeys(secrets []string) (keys [][]byte, err error) {
	if len(secrets) == 0 {
		return nil, errors.New("paidonce: a delivery cannot be checked without a secret")
	}
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) == 0 {
			return nil, errors.New("paidonce: a webhook secret is whsec_ and base64")
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// signedWith reports whether one of the header's signatures is valid. It has one for each secret in
// use.
func signedWith(header string, want []byte) bool {
	for one := range strings.SplitSeq(header, " ") {
		text, ok := strings.CutPrefix(one, "v1,")
		got, err := base64.StdEncoding.DecodeString(text)
		if ok && err == nil && hmac.Equal(got, want) {
			return true
		}
	}
	return false
}
