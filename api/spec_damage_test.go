package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"paidonce/api"
)

// damage is a way to make a request wrong. Where openapi.yaml's schemas decide whether it is, name
// stays empty; else the text of openapi.yaml forbids it, and the answer has one of the statuses.
type damage struct {
	name     string
	statuses []int
	applies  func(*sketch) bool
	do       func(*rapid.T, *fuzzRun, *sketch)
}

func always(*sketch) bool { return true }

func hasBody(s *sketch) bool { return s.medium != "" }

func isJSON(s *sketch) bool { return s.medium == mediaJSON }

// isForm: and something is in it.
func isForm(s *sketch) bool {
	o, _ := s.body.(object)
	return s.medium == mediaForm && len(o) > 0
}

// takesBody: also where there is none in this request. Signed bodies are taken as they come.
func takesBody(s *sketch) bool {
	return (s.method == http.MethodPost || s.method == http.MethodPut) && s.secured()
}

// takesKey reports whether an idempotency key may be given.
func takesKey(p *place) bool {
	return slices.ContainsFunc(p.params("header"), func(h *openapi3.Parameter) bool { return h.Name == "Idempotency-Key" })
}

// jsonWith applies to bodies that have a member whose value is of a kind.
func jsonWith(kind string) func(*sketch) bool {
	return func(s *sketch) bool { return isJSON(s) && len(s.membersOf(kind)) > 0 }
}

// membersOf are the names of the body's members of a kind.
func (s *sketch) membersOf(kind string) (names []string) {
	o, _ := s.body.(object)
	for _, m := range o {
		if prop := s.bodySchema(s.medium).Properties[m.name]; prop != nil && prop.Value.Type.Is(kind) {
			names = append(names, m.name)
		}
	}
	return names
}

// nestedNames are the names of the body's objects in which something is.
func (s *sketch) nestedNames() []string {
	return slices.DeleteFunc(s.membersOf("object"), func(name string) bool {
		o, _ := s.body.(object).get(name).(object)
		return len(o) == 0
	})
}

// replace gives a member of a kind another value.
func replace(kind string, values ...any) func(*rapid.T, *fuzzRun, *sketch) {
	return func(t *rapid.T, _ *fuzzRun, s *sketch) {
		name := pick(t, "member", s.membersOf(kind))
		s.body = s.body.(object).set(name, pick(t, "value", values))
	}
}

func spoilBody(forms ...func(string) string) func(*rapid.T, *fuzzRun, *sketch) {
	return func(t *rapid.T, _ *fuzzRun, s *sketch) {
		s.spoilBody = pick(t, "how", forms)
	}
}

func with(suffix string) func(string) string { return func(s string) string { return s + suffix } }

func after(prefix string) func(string) string { return func(s string) string { return prefix + s } }

// line is a header with one line, for lines.
func line(values ...string) (list [][]string) {
	for _, v := range values {
		list = append(list, []string{v})
	}
	return list
}

// lines gives a header other lines; nil: none.
func lines(header string, values ...[]string) func(*rapid.T, *fuzzRun, *sketch) {
	return func(t *rapid.T, _ *fuzzRun, s *sketch) {
		if v := pick(t, header, values); v == nil {
			delete(s.header, header)
		} else {
			s.header[header] = v
		}
	}
}

// oddNames are names of parameters that no operation has, or that are nearly those that one has.
var oddNames = []string{
	"", "nope", "Amount", "amount ", "amounts", "metadata[", "metadata[a][b]", "Limit", "url\x00", "__proto__", "a.b", "expand[]", "id", "key", "order", "é",
}

// oddValues are values of every type.
var oddValues = slices.Concat([]any{
	nil, true, false, "", "x", "1", " ", "tok_visa", "4242424242424242", strings.Repeat("x", 2001), strings.Repeat("é", 501), []any{}, []any{"*"}, []any{nil}, []any{[]any{}},
	object{}, object{{"a", "b"}}, object{{"a", nil}}, object{{"a", json.Number("1")}}, object{{"a", object{}}}, object{{"", "x"}}, nested(200),
}, numbers("0", "-1", "1.5", "99999999", "100000000", "9223372036854775808", "1e400", strings.Repeat("9", 400)))

func numbers(spellings ...string) (list []any) {
	for _, n := range spellings {
		list = append(list, json.Number(n))
	}
	return list
}

func nested(depth int) any {
	var v any = object{}
	for range depth {
		v = object{{"a", v}}
	}
	return v
}

var bad = []int{http.StatusBadRequest}

// damages are tried one at a time, so that no other fault can be the reason of a refusal.
var damages = []damage{
	// another value, one that the schema has perhaps
	{"", nil, hasBody, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		o, _ := s.body.(object)
		names := propertiesOf(s.bodySchema(s.medium))
		if len(names) > 0 {
			s.body = o.set(pick(t, "member", names), pick(t, "value", oddValues))
		}
	}},
	{"", nil, hasBody, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		o, _ := s.body.(object)
		s.body = o.set(pick(t, "name", oddNames), "x")
	}},
	{"", nil, hasBody, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		if o, _ := s.body.(object); len(o) > 0 {
			s.body = o.without(pick(t, "missing", o).name)
		}
	}},
	{"", nil, isJSON, func(t *rapid.T, _ *fuzzRun, s *sketch) { s.body = pick(t, "document", oddValues) }},

	{"cut off", bad, isJSON, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		at := uniform(t, "cut at", 1000)
		s.spoilBody = func(body string) string { return body[:1+at%(len(body)-1)] }
	}},
	{"not one document", bad, isJSON, spoilBody(
		with("x"), with("{}"), with("\x00"), with(","), with("]"), after("\ufeff"), after("x"), after("["), after("//\n"), after(","),
	)},
	{"given twice", bad, func(s *sketch) bool { o, _ := s.body.(object); return isJSON(s) && len(o) > 0 }, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		o := s.body.(object)
		s.body = append(slices.Clone(o), pick(t, "twice", o))
	}},
	{"given twice within", bad, func(s *sketch) bool { return isJSON(s) && len(s.nestedNames()) > 0 }, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		o := s.body.(object)
		name := pick(t, "object", s.nestedNames())
		within := o.get(name).(object)
		s.body = o.set(name, append(slices.Clone(within), pick(t, "twice", within)))
	}},
	{"another spelling of a number", bad, jsonWith("integer"), replace("integer", numbers("50.0", "5e1", "050", "+50", "-0", "5E+1", "0x32")...)},
	{"NUL", bad, jsonWith("string"), replace("string", "\x00", "a\x00b")},
	{"not UTF-8", bad, jsonWith("string"), replace("string", "\xff", "a\xc3", "\xed\xa0\x80", "\xc0\xaf")},
	{"half a surrogate pair", bad, jsonWith("string"), func(t *rapid.T, r *fuzzRun, s *sketch) {
		replace("string", "HALF")(t, r, s)
		s.spoilBody = func(body string) string { return strings.Replace(body, "HALF", `\udc00`, 1) }
	}},
	{"", nil, func(s *sketch) bool { o, _ := s.body.(object); return isJSON(s) && len(o) > 0 }, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		o := s.body.(object)
		s.body = o.set(pick(t, "null", o).name, nil)
	}},

	{"", nil, func(s *sketch) bool { return isForm(s) && len(s.membersOf("integer")) > 0 }, replace("integer",
		"50.0", "5e1", "050", "+50", "-0", " 50", "50 ", "５０", "0x32", "",
	)},
	{"not a form", bad, isForm, spoilBody(with(";a=1"), with("&"), with("&&a=1"), with("&a"), with("&=1"), with("&%zz=1"), after("&"), after("metadata[zz]=a;b=c&"))},
	{"not UTF-8", bad, isForm, spoilBody(with("%ff"), with("&%ff=1"), with("\xff"))},
	{"given twice", bad, isForm, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		names := slices.Concat(s.membersOf("string"), s.membersOf("integer"), s.membersOf("boolean"))
		if len(names) == 0 {
			t.Skip("nothing can be given twice")
		}
		name := pick(t, "twice", names)
		s.spoilBody = with("&" + name + "=1")
	}},
	{"given twice within", bad, func(s *sketch) bool { return isForm(s) && len(s.nestedNames()) > 0 }, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		name := pick(t, "object", s.nestedNames())
		twice := pick(t, "twice", pairsOf(object{{name, s.body.(object).get(name)}}, false))
		s.spoilBody = with("&" + twice.name + "=1")
	}},
	{"NUL", bad, isForm, spoilBody(with("%00"), with("&%00=1"))},
	{"too large", []int{http.StatusRequestEntityTooLarge}, isJSON, spoilBody(with(strings.Repeat(" ", api.DefaultMaxBody)))},
	{"another media type", []int{http.StatusUnsupportedMediaType}, func(s *sketch) bool { return isJSON(s) || isForm(s) }, lines("Content-Type",
		append(line("", "text/xml", "application/jsonx", mediaJSON+"; charset=latin1", "multipart/form-data; boundary=x", "é"), nil, []string{mediaForm, mediaForm})...,
	)},
	{"JSON as a form", bad, isJSON, lines("Content-Type", []string{mediaForm})},
	{"a form as JSON", bad, isForm, lines("Content-Type", []string{mediaJSON})},
	{"compressed", []int{http.StatusUnsupportedMediaType}, takesBody, lines("Content-Encoding",
		[]string{"gzip"}, []string{"identity, br"}, []string{"identity", "deflate"},
	)},

	{"no key", bad, (*sketch).needsKey, lines("Idempotency-Key", nil)},
	{"not a key", bad, func(s *sketch) bool { return takesKey(s.place) }, lines("Idempotency-Key", append(
		line("", "  ", "é", "\xff", `"a`, `"a"b`, `""`, `"a\b"`, strings.Repeat("k", 256), strings.Repeat("k", 9000)), []string{"a", "b"}, []string{"a", "a"})...,
	)},
	{"no API key", []int{http.StatusUnauthorized}, func(s *sketch) bool { return s.secured() }, lines("Authorization", append(
		line("", "Bearer", "Bearer sk_wrong", "Bearer \xff", "Basic !", "Basic Og==", "Digest sk_wrong", "Bearer "+strings.Repeat("k", 300)), nil, []string{"Bearer a", "Bearer a"})...,
	)},
	{"two API keys", []int{http.StatusUnauthorized}, func(s *sketch) bool { return s.secured() }, func(_ *rapid.T, r *fuzzRun, s *sketch) {
		s.header["Authorization"] = []string{"Bearer " + r.apiKey, "Bearer " + r.apiKey}
	}},
	{"another account", bad, func(s *sketch) bool { return s.secured() }, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		s.header[pick(t, "header", []string{"Stripe-Account", "Stripe-Context"})] = []string{pick(t, "account", []string{"acct_1", "é", " x"})}
	}},
	{"another signature", bad, func(s *sketch) bool { return s.header["Stripe-Signature"] != nil }, lines("Stripe-Signature",
		nil, []string{""}, []string{"t=1,v1=00"}, []string{"é"}, []string{signed, signed}, []string{"t=99999999999999999999,v1=00"}, []string{"v1=00"},
	)},

	{"", nil, func(s *sketch) bool { return len(s.ids) > 0 }, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		for name := range s.ids {
			s.ids[name] = rapid.OneOf(rapid.SampledFrom([]string{
				"x", "..", ".", "\x00", "a\x00", "\xff", "a/b", "a b", "%2F", "%", "é", exampleCharge, "null",
				strings.Repeat("x", 255), strings.Repeat("é", 255), strings.Repeat("x", 256), strings.Repeat("x", 5000), "search", ":id", "*",
			}), rapid.StringN(1, 20, -1)).Draw(t, "id")
		}
	}},
	{"another path", []int{http.StatusNotFound}, always, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		s.spoilPath = with(pick(t, "behind the path", []string{"/", "//", "/x/y/z", "/%2F/x/y"}))
	}},
	{"another method", []int{http.StatusMethodNotAllowed}, always, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		other := *s.place
		var methods []string
		for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if s.item.GetOperation(m) == nil {
				methods = append(methods, m)
			}
		}
		other.method = pick(t, "method", methods)
		s.place = &other
	}},

	// what the query may not have, or may have
	{"", nil, always, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		name := pick(t, "name", slices.Concat(oddNames, propertiesOf(s.querySchema()), []string{"limit", "created[gt]", "created[xx]", "status", "charge"}))
		if name == "created" { // as a number it is that second, which OpenAPI has no way to say
			name = "created[lte]"
		}
		s.query = s.query.set(name,
			pick(t, "value", []string{
				"", "0", "1", "100", "101", "-1", "1.0", "1e1", " 5", "99999999999999999999", "abc", "null", "failed", "charge.failed", "asc", "a b",
				strings.Repeat("x", 255), strings.Repeat("é", 255), strings.Repeat("x", 256),
			}))
	}},
	{"not a query", bad, always, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		more := pick(t, "more of the query", []string{"a=1;b=2", "%zz=1", "limit=%zz", "limit=%ff", "limit=%00", "a", "=1", "&"})
		s.spoilQuery = func(q string) string { return strings.TrimPrefix(q+"&"+more, "&") }
	}},
	{"given twice in the query", bad, func(s *sketch) bool { return len(s.query) > 0 }, func(t *rapid.T, _ *fuzzRun, s *sketch) {
		p := pick(t, "twice", pairsOf(s.query, false))
		s.spoilQuery = with("&" + p.name + "=" + "1")
	}},
}

func (s *sketch) needsKey() bool { return s.keyed() }

func propertiesOf(s *openapi3.Schema) []string { return slices.Sorted(maps.Keys(s.Properties)) }

// outside gives one parameter, of the body or of the query, a value that is just outside of what
// its schema allows.
var outside = damage{"", nil, func(s *sketch) bool {
	return len(s.params("query")) > 0 || hasBody(s) && len(s.bodySchema(s.medium).Properties) > 0
}, func(t *rapid.T, r *fuzzRun, s *sketch) {
	schema, in := s.querySchema(), &s.query
	if hasBody(s) {
		schema = s.bodySchema(s.medium)
		o, _ := s.body.(object)
		in = &o
		defer func() { s.body = o }()
	}
	name := pick(t, "parameter", propertiesOf(schema))
	*in = in.set(name, r.beyond(t, s.place, schema.Properties[name].Value))
}}

// beyond is a value just outside of a schema.
func (r *fuzzRun) beyond(t *rapid.T, p *place, s *openapi3.Schema) any {
	var values []any
	number := func(n float64) json.Number { return json.Number(fmt.Sprint(int64(n))) }
	switch {
	case len(s.Enum) > 0:
		values = append(values, fmt.Sprint(s.Enum[0])+"x", strings.ToUpper(fmt.Sprint(s.Enum[0])), "")
	case s.Type.Is("string"):
		values = append(values, "", json.Number("1"), true, object{})
		if s.MaxLength != nil {
			long := strings.Repeat("x", int(*s.MaxLength)+1)
			values = append(values, long, long, long, strings.Repeat("é", int(*s.MaxLength)+1))
		}
	case s.Type.Is("integer"):
		values = append(values, "x", json.Number("1.5"), json.Number("9223372036854775808"))
		if s.Min != nil {
			values = append(values, number(*s.Min-1))
		}
		if s.Max != nil {
			values = append(values, number(*s.Max+1), number(*s.Max+1))
		}
	case s.Type.Is("boolean"):
		values = append(values, "yes", "TRUE", json.Number("1"), "")
	case s.Type.Is("array"):
		values = append(values, []any{}, []any{""}, []any{json.Number("1")}, "x")
		if s.MaxItems != nil {
			values = append(values, slices.Repeat([]any{"charge.succeeded"}, int(*s.MaxItems)+1))
		}
	case s.AdditionalProperties.Schema != nil:
		entry := object{{"a", r.beyond(t, p, s.AdditionalProperties.Schema.Value)}}
		values = append(values, entry, entry, entry, "x", []any{})
		if s.MaxProps != nil {
			full := object{}
			for i := range int(*s.MaxProps) + 1 {
				full = append(full, member{fmt.Sprint("k", i), "v"})
			}
			values = append(values, full)
		}
	default:
		within := pick(t, "member", propertiesOf(s))
		whole := r.members(t, p, "", s)
		values = append(values, whole.set(within, r.beyond(t, p, s.Properties[within].Value)), whole.set(within+"x", json.Number("1")), "x")
	}
	return pick(t, "value", values)
}
