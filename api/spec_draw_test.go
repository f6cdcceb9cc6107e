package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"paidonce/internal/world"
)

const (
	mediaJSON = "application/json"
	mediaForm = "application/x-www-form-urlencoded"
)

// sketch is a request that is not written yet.
type sketch struct {
	*place
	ids     map[string]string // the parameters of the path
	query   object
	header  http.Header
	medium  string // how the body is written; empty: there is none
	body    any
	indexed bool // lists of a form have indices
	chunked bool

	// What is done to the request once it is written.
	spoilPath, spoilQuery, spoilBody func(string) string
}

// pool are values that the server gave, by what they are of: ids of charges, keys that were used, …
type pool map[string][]string

// learn takes the ids of an answer.
func (p pool) learn(body []byte) {
	var o struct {
		ID, Object, Key string
		Data            json.RawMessage
	}
	if json.Unmarshal(body, &o) != nil {
		return
	}
	var list []json.RawMessage
	if o.Object == "list" && json.Unmarshal(o.Data, &list) == nil {
		for _, entry := range list {
			p.learn(entry)
		}
		return
	}
	id, of := o.ID, o.Object+"s"
	if o.Object == "idempotency_key" {
		id = o.Key
	}
	if id != "" && !slices.Contains(p[of], id) {
		p[of] = append(p[of], id)
	}
}

// one draws a value that is known, if there is one.
func (p pool) one(t *rapid.T, of string) (string, bool) {
	at := uniform(t, "known "+of, 10)
	if known := p[of]; len(known) > 0 && at < 8 {
		return known[len(known)-1-at%len(known)], true
	}
	return "", false
}

// ofParam is the word for what a parameter names; empty: nothing that the server made.
func (p *place) ofParam(name string) string {
	switch name {
	case "charge", "payment_intent", "webhook_endpoint":
		return name + "s"
	case "id", "key", "starting_after", "ending_before":
		return p.resource()
	}
	return ""
}

// valid draws a request that openapi.yaml allows, as far as schemas and examples tell.
func (r *fuzzRun) valid(t *rapid.T, p *place) *sketch {
	s := &sketch{place: p, ids: map[string]string{}, header: http.Header{}}
	for _, param := range p.params("path") {
		s.ids[param.Name] = scalar(r.value(t, p, param.Name, withExample(param)))
	}
	query := p.querySchema()
	for _, param := range p.params("query") {
		if param.Required || oneIn(t, "with "+param.Name, 4) {
			v := r.value(t, p, param.Name, query.Properties[param.Name].Value)
			if o, isObject := v.(object); isObject && len(o) == 0 {
				continue // a query has no way to write it: created= is no range
			}
			s.query = append(s.query, member{param.Name, v})
		}
	}
	for _, param := range p.params("header") {
		if param.Required || oneIn(t, "with "+param.Name, 4) {
			s.header[http.CanonicalHeaderKey(param.Name)] = []string{r.headerValue(t, p, param)}
		}
	}
	if p.secured() {
		s.header["Authorization"] = []string{r.authorization(t)}
	}
	if media := p.media(); len(media) > 0 && (p.op.RequestBody.Value.Required || rapid.Bool().Draw(t, "with body")) {
		s.medium = pick(t, "medium", media)
		s.body = r.value(t, p, "", p.bodySchema(s.medium))
		s.indexed, s.chunked = rapid.Bool().Draw(t, "indexed"), oneIn(t, "chunked", 10)
		s.header["Content-Type"] = []string{s.medium + pick(t, "charset", []string{"", "", "", "; charset=utf-8", ";charset=UTF-8"})}
	}
	return s
}

func withExample(p *openapi3.Parameter) *openapi3.Schema {
	s := *p.Schema.Value
	if p.Example != nil {
		s.Example = p.Example
	}
	return &s
}

// headerValue draws a header's value. Keys are mostly new: under one that was used nothing but its
// own request gets anywhere.
func (r *fuzzRun) headerValue(t *rapid.T, p *place, param *openapi3.Parameter) string {
	switch param.Name {
	case "Idempotency-Key":
		if used, ok := r.pool.one(t, "idempotency_keys"); ok && oneIn(t, "used key", 8) {
			return used
		}
		r.fresh++
		form := pick(t, "new key", []string{"k-%d", "order 67/35 #%d?", `"quoted \"%d\""`, "~%d~", strings.Repeat("k", 250) + "%d"})
		return fmt.Sprintf(form, r.fresh)
	case "Stripe-Signature":
		return signed // once the body is written
	case "Prefer":
		return pick(t, "Prefer", []string{"wait=1", "wait=0", "respond-async, wait=1", `wait="1"`, "wait=x", "wait=99999999999999999999", ",;=", "é"})
	}
	return scalar(r.value(t, p, param.Name, withExample(param)))
}

// signed stands for a signature of the body.
const signed = "signed"

func (r *fuzzRun) authorization(t *rapid.T) string {
	switch uniform(t, "authorization", 30) {
	case 0:
		return basic(r.apiKey)
	case 1:
		return "Bearer " + r.otherKey
	case 2:
		return "bearer  " + r.apiKey
	}
	return "Bearer " + r.apiKey
}

// value draws a value by a schema, of the example's sort rather often.
func (r *fuzzRun) value(t *rapid.T, p *place, name string, s *openapi3.Schema) any {
	if of := p.ofParam(name); of != "" {
		if known, ok := r.pool.one(t, of); ok {
			return known
		}
	}
	if s.Example != nil && !s.Type.Is("object") && (r.sober || uniform(t, "example of "+name, 10) < 7) {
		return ordered(s.Example)
	}
	if len(s.Enum) > 0 {
		return ordered(pick(t, name, s.Enum))
	}
	switch {
	case s.Type.Is("string"):
		return words(t, name, s)
	case s.Type.Is("integer"):
		return integer(t, name, s)
	case s.Type.Is("boolean"):
		return rapid.Bool().Draw(t, name)
	case s.Type.Is("array"):
		return r.list(t, p, name, s)
	case s.Type.Is("object"):
		return r.members(t, p, name, s)
	}
	t.Fatalf("%s: nothing can be drawn for a schema of type %v", name, s.Type)
	return nil
}

// texts that have gone wrong somewhere; NUL is not among them: it is not allowed anywhere.
var hostile = []string{
	"é", "\U0001F469\u200d\U0001F680", "\u202e\ufeff", "\u0001\x1f\x7f", "\uffff", "'; DROP TABLE charges; --", "%00%ff%zz", "a&b=c;d", "[0]", "\\", `"`, "null", "1", " ", "a\r\nb: c",
	"../..",
}

func words(t *rapid.T, name string, s *openapi3.Schema) string {
	if s.Pattern != "" {
		return rapid.StringMatching(s.Pattern).Draw(t, name)
	}
	longest := 40
	if s.MaxLength != nil {
		longest = int(*s.MaxLength)
	}
	shortest := int(s.MinLength)
	return rapid.OneOf(
		rapid.SampledFrom(hostile),
		rapid.SampledFrom([]string{strings.Repeat("x", longest), strings.Repeat("é", longest), strings.Repeat("\U0001F600", longest), strings.Repeat("x", shortest)}),
		rapid.StringOfN(rapid.RuneFrom(nil, unicode.L, unicode.N, unicode.P, unicode.S), shortest, min(longest, 30), -1),
	).Draw(t, name)
}

func integer(t *rapid.T, name string, s *openapi3.Schema) json.Number {
	const aTime = 1764403200
	lowest, highest := int64(-1<<62), int64(1<<62)
	if s.Min != nil {
		lowest = int64(*s.Min)
	}
	if s.Max != nil {
		highest = int64(*s.Max)
	}
	n := rapid.OneOf(
		rapid.SampledFrom([]int64{lowest, highest, max(lowest, 50), min(highest, aTime), max(lowest, 0)}),
		rapid.Int64Range(lowest, highest), rapid.Int64Range(lowest, min(highest, max(lowest, 0)+5000)),
	).Draw(t, name)
	return json.Number(fmt.Sprint(n))
}

func (r *fuzzRun) list(t *rapid.T, p *place, name string, s *openapi3.Schema) []any {
	n := int(s.MinItems) + uniform(t, "more of "+name, 4)
	if s.MaxItems != nil && oneIn(t, "full "+name, 20) {
		n = int(*s.MaxItems)
	}
	entries := make([]any, n)
	for i := range entries {
		entries[i] = r.value(t, p, name+" entry", s.Items.Value)
	}
	return entries
}

func (r *fuzzRun) members(t *rapid.T, p *place, name string, s *openapi3.Schema) object {
	var o object
	names := make([]string, 0, len(s.Properties))
	for n := range s.Properties {
		names = append(names, n)
	}
	slices.Sort(names)
	// exactly one, says the description
	for _, either := range [][]string{{"source", "customer"}, {"charge", "payment_intent"}, {"payment_method_types", "automatic_payment_methods"}} {
		if s.Properties[either[0]] != nil && s.Properties[either[1]] != nil && (r.sober || !oneIn(t, "both or none", 8)) {
			one := pick(t, "one of two", either)
			o = append(o, member{one, r.value(t, p, one, s.Properties[one].Value)})
			names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(either, n) })
		}
	}
	// only with the other flow, or with a confirmation, says the description
	names = slices.DeleteFunc(names, func(n string) bool {
		return slices.Contains([]string{"return_url", "off_session", "error_on_requires_action"}, n) && (r.sober || !oneIn(t, "of the other flow", 10))
	})
	for _, n := range names {
		if slices.Contains(s.Required, n) || uniform(t, "with "+n, 10) > 5 {
			o = append(o, member{n, r.value(t, p, n, s.Properties[n].Value)})
		}
	}
	if more := s.AdditionalProperties.Schema; more != nil {
		n := uniform(t, "pairs", 4)
		if s.MaxProps != nil && oneIn(t, "full "+name, 20) {
			n = int(*s.MaxProps)
		}
		for i := range n {
			o = o.set(pick(t, "name", []string{"order", "a b", "é", "\U0001F600", "k&=;%", strings.Repeat("k", 36)})+fmt.Sprint(i), r.value(t, p, name+" value", more.Value))
		}
	}
	if len(o) > 1 && oneIn(t, "turned", 5) {
		slices.Reverse(o)
	}
	return o
}

// written is the request on its way.
func (s *sketch) written(t *rapid.T, base string) (*http.Request, []pair, []pair) {
	path := s.path
	for name, id := range s.ids {
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(id), 1)
	}
	query := pairsOf(s.query, false)
	rawQuery := encode(t, query)
	var content string
	var form []pair
	switch {
	case s.medium == mediaForm:
		if o, isObject := s.body.(object); isObject {
			form = pairsOf(o, s.indexed)
		}
		content = encode(t, form)
	case s.medium != "":
		content = text(s.body)
	}
	path, rawQuery, content = apply(s.spoilPath, path), apply(s.spoilQuery, rawQuery), apply(s.spoilBody, content)
	target := base + path
	if rawQuery != "" {
		target += "?" + rawQuery
	}
	req, err := http.NewRequest(s.method, target, strings.NewReader(content))
	if err != nil {
		t.Skip("net/http does not send ", target)
	}
	if s.chunked {
		req.ContentLength = -1
	}
	req.Header = s.header
	if lines := req.Header["Stripe-Signature"]; len(lines) == 1 && lines[0] == signed {
		req.Header["Stripe-Signature"] = []string{world.Signed([]byte(content), whsec, time.Now())}
	}
	return req, query, form
}

func apply(spoil func(string) string, s string) string {
	if spoil == nil {
		return s
	}
	return spoil(s)
}

// uniform draws a number below n, each as likely as the next: rapid's own ranges prefer small ones.
func uniform(t *rapid.T, label string, n int) int {
	const bits = 12 // some thousand choices are enough everywhere
	return rapid.Custom(func(t *rapid.T) int {
		drawn := 0
		for _, bit := range rapid.SliceOfN(rapid.Bool(), bits, bits).Draw(t, label) {
			drawn *= 2
			if bit {
				drawn++
			}
		}
		return drawn % n
	}).Draw(t, label)
}

func pick[V any](t *rapid.T, label string, list []V) V { return list[uniform(t, label, len(list))] }

// oneIn is true once in n times.
func oneIn(t *rapid.T, label string, n int) bool { return uniform(t, label, n) == n-1 }
