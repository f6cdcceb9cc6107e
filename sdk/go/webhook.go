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

// Event is something that came true: what Paidonce delivers, and what [Client.Events] lists.
type Event struct {
	ID       string `json:"id"` // deliveries may be repeated: who has stored the id has seen the event
	Type     string `json:"type"`
	Created  int64  `json:"created"`
	Livemode bool   `json:"livemode"`
	Sequence int    `json:"sequence"` // of the events of one object, from 1 without gaps
	Data     struct {
		Object json.RawMessage `json:"object"` // a Charge or a Refund
	} `json:"data"`
}

// ErrSignature: the delivery is not from Paidonce, was changed, or is too old. Answer 400 and believe nothing of it.
var ErrSignature = errors.New("paidonce: the signature of the delivery does not match")

// webhookTolerance is how old a delivery may be, or of the future: the same as in the libraries of Standard Webhooks.
const webhookTolerance = 5 * time.Minute

// VerifyWebhook checks a delivery and returns its event. The body has to be the bytes as they came; the secrets are the endpoint's
// (whsec_…), several while one is replaced. Errors: [ErrSignature]; or another, whatever the delivery is, when a secret is none or there is
// none: an empty one would let everybody sign.
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

// signedWith: the header has one signature of each secret that is in use.
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
