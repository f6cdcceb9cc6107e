package inbox_test

import (
	"strings"
	"testing"
	"time"

	"paidonce/internal/shop"
	"paidonce/internal/world"
)

// Whatever is signed is stored, as it came, and answered with 200: a provider that is refused sends
// the same for days and then disables the endpoint. What cannot be read is parked, what changes
// nothing here is noted, and nothing is tried twenty times.
func TestSignedBodiesOfOddShapes(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	const parked, noted = "parked_at IS NOT NULL AND last_error <> ''", "processed_at IS NOT NULL"
	about := func(members string) string {
		return `{"id":"evt_1","object":"event","type":"charge.succeeded",` + members + `}`
	}
	for name, c := range map[string]struct{ body, want, id string }{
		"nothing":         {"", parked, ""},
		"null":            {"null", parked, ""},
		"an array":        {`[{"id":"evt_1","object":"event","type":"charge.succeeded"}]`, parked, ""},
		"a number":        {"7", parked, ""},
		"a text":          {`"evt_1"`, parked, ""},
		"no members":      {"{}", parked, ""},
		"no JSON":         {"id=evt_1&type=charge.succeeded", parked, ""},
		"cut off":         {about(`"livemode":false`)[:60], parked, ""},
		"two values":      {about(`"livemode":false`) + "{}", parked, ""},
		"bytes":           {"\xff\xfe\x00", parked, ""},
		"a numeric id":    {`{"id":7,"object":"event","type":"charge.succeeded"}`, parked, ""},
		"an id of blanks": {`{"id":"evt 1","object":"event","type":"charge.succeeded"}`, parked, ""},
		"a long id": {
			`{"id":"` + strings.Repeat("x", 300) + `","object":"event","type":"charge.succeeded"}`,
			parked, "",
		},
		"a numeric type":               {`{"id":"evt_1","object":"event","type":7}`, parked, "evt_1"},
		"no type":                      {`{"id":"evt_1","object":"event"}`, parked, "evt_1"},
		"a type with a NUL":            {`{"id":"evt_1","object":"event","type":"x\u0000"}`, parked, "evt_1"},
		"an id with a NUL":             {`{"id":"evt_\u0000","object":"event","type":"charge.failed"}`, parked, ""},
		"another object":               {`{"id":"ch_1","object":"charge","type":"charge.failed"}`, parked, "ch_1"},
		"a livemode of text":           {about(`"livemode":"yes"`), parked, "evt_1"},
		"a livemode that is an object": {about(`"livemode":{"on":true}`), parked, "evt_1"},
		"too deep": {
			about(`"data":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)), parked, "",
		},

		"no data":             {about(`"livemode":false`), noted, "evt_1"},
		"null data":           {about(`"data":null`), noted, "evt_1"},
		"null object":         {about(`"data":{"object":null}`), noted, "evt_1"},
		"data in an array":    {about(`"data":[{"object":{"id":"ch_1"}}]`), noted, "evt_1"},
		"an object in a text": {about(`"data":{"object":"ch_1"}`), noted, "evt_1"},
		"a numeric object":    {about(`"data":{"object":{"id":7}}`), noted, "evt_1"},
		"an object elsewhere": {about(`"data":{"object":{"id":"../refunds/re_1"}}`), noted, "evt_1"},
		"an object of dots":   {about(`"data":{"object":{"id":".."}}`), noted, "evt_1"},
		"an unknown object":   {about(`"data":{"object":{"id":"ch_1"}}`), noted, "evt_1"},
		"false as text": {
			about(`"livemode":"false","data":{"object":{"id":"ch_1"}}`), noted, "evt_1",
		},
		"the other mode as text": {
			about(`"livemode":"true","data":{"object":{"id":"ch_1"}}`), noted, "evt_1",
		},
		"a name in capitals": {
			about(`"ID":7,"Livemode":"x","data":{"object":{"id":"ch_1"}}`), noted, "evt_1",
		},
		"names that occur twice": {
			`{"id":"evt_0",` + about(`"type":"customer.updated"`)[1:], noted, "evt_1",
		},
		"no UTF-8": {
			about("\"data\":{\"object\":{\"id\":\"ch_1\",\"description\":\"\xe9\"}}"), noted, "evt_1",
		},
		"deep": {
			about(`"data":{"object":{"id":"ch_1","x":` + strings.Repeat("[", 5_000) +
				strings.Repeat("]", 5_000) + `}}`), noted, "evt_1",
		},
		"large": {
			about(`"data":{"object":{"id":"ch_1","x":"` + strings.Repeat("x", 1<<20-200) + `"}}`),
			noted, "evt_1",
		},
		"a thin event": {
			`{"id":"evt_1","object":"v2.core.event","type":"v1.billing.meter.no_meter_found",` +
				`"livemode":true,"created":"2026-11-30T07:00:00.000Z","related_object":` +
				`{"id":"mtr_1","type":"billing.meter","url":"/v1/billing/meters/mtr_1"}}`, noted, "evt_1",
		},
	} {
		if _, err := s.Pool.Exec(t.Context(), `DELETE FROM provider_events`); err != nil {
			t.Fatal(err)
		}
		for range 2 { // a second delivery is the same event
			a := s.Send(c.body, world.Signed([]byte(c.body), world.Secret, time.Now()))
			if a.Code != 200 {
				t.Errorf("%s: got %d %s", name, a.Code, a.Body)
			}
		}
		if n := events(s, t, "payload = $1 AND ($2 = '' OR id = $2)", []byte(c.body), c.id); n != 1 &&
			c.want == parked {
			t.Errorf("%s: stored %d times as it came", name, n)
		}
		s.Process()
		if n := events(s, t, c.want+" AND attempts <= 1"); n != 1 || events(s, t, "true") != 1 {
			t.Errorf("%s: %d of %d events are as they should be", name, n, events(s, t, "true"))
		}
		if n, err := s.Inbox.Replay(
			t.Context(), "", time.Now().Add(-time.Hour), "",
		); n != 1 || err != nil {
			t.Errorf("%s: replayed %d, %v", name, n, err)
		}
		s.Process()
		if n := events(s, t, "processed_at IS NULL"); n != 0 {
			t.Errorf("%s: not processed after an operator's replay", name)
		}
	}
}

// A body that one of several secrets signed tells only the same of an event's id: the first body
// under an id is kept, whatever comes under it later.
func TestTheFirstBodyUnderAnIDStays(t *testing.T) {
	t.Parallel()
	s := shop.New(world.New(t))
	first := string(world.Event("evt_1", "charge.succeeded", "ch_1"))
	for _, body := range []string{first, first + " ", `{"id":"evt_1","object":"event"}`} {
		if a := s.Send(
			body, world.Signed([]byte(body), world.Secret, time.Now()),
		); a.Code != 200 {
			t.Errorf("%q: got %d %s", body, a.Code, a.Body)
		}
	}
	if n := events(s, t, "payload = $1", []byte(first)); n != 1 || events(s, t, "true") != 1 {
		t.Errorf("%d of %d are the first", n, events(s, t, "true"))
	}
}
