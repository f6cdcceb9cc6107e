package api

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/problem"
)

const b0 = `{"amount":2000,"currency":"usd","source":"tok_visa"}`

// refusal is what a decoder should say.
type refusal struct {
	name, in    string
	code, param string
}

func checkRefusals(t *testing.T, cases []refusal, decode func(string) (*parameters, *problem.Error)) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, e := decode(tc.in)
			if e == nil {
				t.Fatalf("%.200q was accepted", tc.in)
			}
			if e.Code.Status() != 400 || e.Code.String() != tc.code || e.Param != tc.param {
				t.Errorf("%.200q: got %d %s %q (%s), want 400 %s %q", tc.in, e.Code.Status(), e.Code, e.Param, e.Message, tc.code, tc.param)
			}
		})
	}
}

// takes are the shapes of an operation's query and body.
func takes(id string) (query, body shape) {
	all := (*Server)(nil).operations()
	op := all[slices.IndexFunc(all, func(op operation) bool { return op.id == id })]
	return op.query, op.body
}

var (
	listShape, _   = takes("listCharges")
	_, chargeShape = takes("createCharge")
)

func chargeJSON(in string) (*parameters, *problem.Error) {
	return charge(decodeJSON([]byte(in), chargeShape))
}

func chargeForm(in string) (*parameters, *problem.Error) {
	return charge(decodeForm(in, chargeShape, problem.BodyMalformed))
}

func charge(p *parameters, e *problem.Error) (*parameters, *problem.Error) {
	if e == nil {
		p.dropUnset()
	}
	return p, e
}

func TestShapesAreSortedByName(t *testing.T) {
	for _, op := range (*Server)(nil).operations() {
		s := op.body
		if !slices.IsSortedFunc(s, func(a, b field) int { return strings.Compare(a.name, b.name) }) {
			t.Errorf("%v is not sorted: the canonical form would depend on the order of a table", s)
		}
	}
}

func TestJSONThatIsRefused(t *testing.T) {
	checkRefusals(t, []refusal{
		{"top level array", `[]`, "body_malformed", ""},
		{"top level null", `null`, "body_malformed", ""},
		{"top level string", `""`, "body_malformed", ""},
		{"only whitespace", ` `, "body_malformed", ""},
		{"unknown name", `{"amounts":1}`, "parameter_unknown", "amounts"},
		{"name in another case", `{"Amount":2000,"currency":"usd"}`, "parameter_unknown", "Amount"},
		{"name with a prefix NUL", "{\"\\u0000amount\":1}", "parameter_unknown", "\uFFFDamount"},
		{"name given twice", `{"amount":1,"currency":"usd","amount":2}`, "parameter_duplicate", "amount"},
		{"name given twice, once escaped", `{"amount":1,"\u0061mount":2}`, "parameter_duplicate", "amount"},
		{"metadata key given twice", `{"metadata":{"a":"1","a":"2"}}`, "parameter_duplicate", "metadata[a]"},
		{"null", `{"amount":null}`, "parameter_invalid", "amount"},
		{"null payer", `{"source":null}`, "parameter_invalid", "source"},
		{"null customer", `{"customer":null}`, "parameter_invalid", "customer"},
		{"null capture", `{"capture":null}`, "parameter_invalid", "capture"},
		{"text as a number", `{"currency":1}`, "parameter_invalid", "currency"},
		{"integer as text", `{"amount":"2000"}`, "parameter_invalid_integer", "amount"},
		{"boolean as text", `{"capture":"true"}`, "parameter_invalid", "capture"},
		{"boolean as a number", `{"capture":1}`, "parameter_invalid", "capture"},
		{"object as amount", `{"amount":{}}`, "parameter_invalid_integer", "amount"},
		{"metadata as an array", `{"metadata":[]}`, "parameter_invalid", "metadata"},
		{"metadata as text", `{"metadata":"x"}`, "parameter_invalid", "metadata"},
		{"object in metadata", `{"metadata":{"n":{"a":"b"}}}`, "parameter_invalid", "metadata[n]"},
		{"empty metadata key", `{"metadata":{"":"x"}}`, "parameter_invalid", "metadata"},
		{"bracket in metadata key", `{"metadata":{"a[b":"x"}}`, "parameter_invalid", "metadata"},
		{"empty payer", `{"source":""}`, "parameter_invalid_empty", "source"},
		{"empty currency", `{"currency":""}`, "parameter_invalid_empty", "currency"},
		{"array in metadata", `{"metadata":{"n":[]}}`, "parameter_invalid", "metadata[n]"},
		{"NUL in text", `{"description":"\u0000"}`, "parameter_invalid", "description"},
		{"NUL in a metadata value", `{"metadata":{"a":"x\u0000y"}}`, "parameter_invalid", "metadata[a]"},
		{"NUL in a metadata key", `{"metadata":{"a\u0000":"x"}}`, "parameter_invalid", "metadata"},
		{"second document", b0 + `{"amount":1}`, "body_malformed", ""},
		{"same document again", b0 + b0, "body_malformed", ""},
		{"letters after it", b0 + ` xx`, "body_malformed", ""},
		{"NUL after it", b0 + "\x00", "body_malformed", ""},
		{"byte order mark", "\ufeff" + b0, "body_malformed", ""},
		{"deep nesting", `{"metadata":{"a":` + strings.Repeat(`[`, 100_000), "parameter_invalid", "metadata[a]"},
		{"deep nesting at the top", strings.Repeat(`[`, 100_000), "body_malformed", ""},
		{"deep nesting in an unknown name", `{"x":` + strings.Repeat(`{"x":`, 100_000), "parameter_unknown", "x"},
		{"UTF-16", "{\x00\"\x00a\x00", "body_malformed", ""},
	}, chargeJSON)
}

// Different broken documents must not become one through U+FFFD.
func TestBrokenUnicodeIsRefusedRatherThanReplaced(t *testing.T) {
	for _, broken := range []string{
		"\xff", "\xfe", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80",
		`\ud800`, `\ude00\ud83d`, `x\ud801`, `x\ud802`, `\udc00`, `\ud800\u0041`, `\ud800\ud800`, `\u12`, `\uZZZZ`, `\x41`,
	} {
		for _, in := range []string{
			`{"metadata":{"order":"` + broken + `"}}`, `{"metadata":{"` + broken + `":"x"}}`, `{"description":"` + broken + `"}`, `{"` + broken + `":1}`,
		} {
			if _, e := chargeJSON(in); e == nil || e.Code.String() != "body_malformed" {
				t.Errorf("%q: got %v, want body_malformed", in, e)
			}
		}
	}
	for _, whole := range []string{`\ud83d\ude00`, "\U0001F600", `\u00e9`, "\u2028", `\ufffd`} {
		if _, e := chargeJSON(`{"description":"` + whole + `"}`); e != nil {
			t.Errorf("%q: %v", whole, e)
		}
	}
}

// An amount has one spelling, and nothing is rounded.
func TestIntegersHaveOneSpelling(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "1": 1, "-5": -5, "99999999": 99999999, "100000000": 100000000, "2147483648": 2147483648,
		"9007199254740993": 9007199254740993, "9223372036854775807": 9223372036854775807, "-9223372036854775808": -9223372036854775808,
	} {
		p, e := chargeJSON(`{"amount":` + in + `}`)
		if e != nil || p.integer("amount") != want {
			t.Errorf("JSON %s: got %v, %v", in, p, e)
		}
		p, e = chargeForm("amount=" + in)
		if e != nil || p.integer("amount") != want {
			t.Errorf("form %s: got %v, %v", in, p, e)
		}
	}
	start := time.Now()
	for _, in := range []string{
		"-0", "1.0", "1e0", "1E2", "10.5", "1e400", "-1e400", "1e-400", strings.Repeat("9", 400) + ".0",
	} {
		for _, decode := range []func(string) (*parameters, *problem.Error){
			func(s string) (*parameters, *problem.Error) { return chargeJSON(`{"amount":` + s + `}`) },
			func(s string) (*parameters, *problem.Error) { return chargeForm("amount=" + s) },
		} {
			if _, e := decode(in); e == nil || e.Code.String() != "parameter_invalid_integer" || e.Param != "amount" {
				t.Errorf("%.30s: got %v", in, e)
			}
		}
	}
	// What does not fit is as much as fits: too much for any parameter, and refused as such.
	for _, in := range []string{"9223372036854775808", strings.Repeat("9", 400), strings.Repeat("9", 1_000_000)} {
		for sign, want := range map[string]int64{"": math.MaxInt64, "-": math.MinInt64} {
			p, e := chargeJSON(`{"amount":` + sign + in + `}`)
			if e != nil || p.integer("amount") != want {
				t.Errorf("JSON %s%.30s: got %v, %v", sign, in, p, e)
			}
			if p, e = chargeForm("amount=" + sign + in); e != nil || p.integer("amount") != want {
				t.Errorf("form %s%.30s: got %v, %v", sign, in, p, e)
			}
		}
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("reading took %v", took)
	}
	for _, in := range []string{"NaN", "Infinity", "-Infinity", "01", "+1", ".5", "5.", "0x10", "1_000"} {
		if _, e := chargeJSON(`{"amount":` + in + `}`); e == nil || e.Code.Status() != 400 {
			t.Errorf("JSON %s: got %v", in, e)
		}
	}
	for _, in := range []string{"", "%2B1", "+1", "01", "00", "-", "--1", "1 ", "0x10", "1_000", "%D9%A1", "-01"} {
		if _, e := chargeForm("amount=" + in); e == nil || e.Code.String() != "parameter_invalid_integer" {
			t.Errorf("form %q: got %v", in, e)
		}
	}
}

func TestFormsThatAreRefused(t *testing.T) {
	checkRefusals(t, []refusal{
		{"unknown name", "amounts=1", "parameter_unknown", "amounts"},
		{"name in another case", "Amount=1", "parameter_unknown", "Amount"},
		{"duplicate", "amount=2000&amount=1", "parameter_duplicate", "amount"},
		{"duplicate, once escaped", "amount=2000&%61mount=1", "parameter_duplicate", "amount"},
		{"duplicate in metadata", "metadata[a]=1&metadata[a]=2", "parameter_duplicate", "metadata[a]"},
		{"duplicate in metadata, once escaped", "metadata[a]=1&metadata%5Ba%5D=2", "parameter_duplicate", "metadata[a]"},
		{"metadata cleared and given", "metadata=&metadata[a]=1", "parameter_duplicate", "metadata"},
		{"metadata given and cleared", "metadata[a]=1&metadata=", "parameter_duplicate", "metadata"},
		{"metadata as text", "metadata=x", "parameter_invalid", "metadata"},
		{"metadata as an array", "metadata[]=x", "parameter_invalid", "metadata[]"},
		{"nested metadata", "metadata[a][b]=x", "parameter_invalid", "metadata[a][b]"},
		{"unclosed bracket", "metadata[a=x", "parameter_invalid", "metadata[a"},
		{"text after the bracket", "metadata[a]b=x", "parameter_invalid", "metadata[a]b"},
		{"expand", "expand[0]=invoice", "parameter_invalid", "expand[0]"},
		{"brackets on a text", "source[number]=4242", "parameter_unknown", "source[number]"},
		{"broken escape in a value", "description=%4", "parameter_invalid", "description"},
		{"broken escape in a value, letters", "description=%zz", "parameter_invalid", "description"},
		{"broken escape in a name", "%zz=1", "body_malformed", ""},
		{"invalid UTF-8 in a value", "description=%ff", "parameter_invalid", "description"},
		{"raw invalid UTF-8 in a value", "description=\xff", "parameter_invalid", "description"},
		{"overlong slash", "description=%c0%af", "parameter_invalid", "description"},
		{"encoded surrogate", "description=%ed%a0%80", "parameter_invalid", "description"},
		{"invalid UTF-8 in a name", "%ff=1", "body_malformed", ""},
		{"NUL in a value", "description=%00", "parameter_invalid", "description"},
		{"NUL in a metadata value", "metadata[a]=x%00", "parameter_invalid", "metadata[a]"},
		{"NUL in a metadata key", "metadata[a%00]=x", "parameter_invalid", "metadata"},
		{"semicolon", "amount=1;currency=usd", "body_malformed", ""},
		{"no equals sign", "amount", "body_malformed", ""},
		{"empty pair", "amount=1&&currency=usd", "body_malformed", ""},
		{"trailing ampersand", "amount=1&", "body_malformed", ""},
		{"empty name", "=1", "body_malformed", ""},
		{"empty payer", "source=", "parameter_invalid_empty", "source"},
		{"empty customer", "customer=", "parameter_invalid_empty", "customer"},
		{"empty boolean", "capture=", "parameter_invalid", "capture"},
		{"unset and given", "description=&description=x", "parameter_duplicate", "description"},
		{"boolean", "capture=1", "parameter_invalid", "capture"},
		{"boolean in another case", "capture=True", "parameter_invalid", "capture"},
		{"byte order mark", "\ufeffamount=1", "parameter_unknown", "\ufeffamount"},
	}, chargeForm)
}

func TestMetadataIsBoundedBeforeItIsSearched(t *testing.T) {
	var asJSON, asForm []string
	for i := range 46 {
		asJSON = append(asJSON, fmt.Sprintf(`"k%d":"v"`, i))
		asForm = append(asForm, fmt.Sprintf("metadata[k%d]=v", i))
	}
	if _, e := chargeJSON(`{"metadata":{` + strings.Join(asJSON[:45], ",") + `}}`); e != nil {
		t.Errorf("45 pairs: %v", e)
	}
	if _, e := chargeJSON(`{"metadata":{` + strings.Join(asJSON, ",") + `}}`); e == nil || e.Param != "metadata" {
		t.Errorf("46 pairs as JSON: %v", e)
	} else if !strings.Contains(e.Message, "at most 45 pairs") || !strings.Contains(e.Message, "Paidonce's own") {
		t.Errorf("it does not say why: %s", e.Message)
	}
	if _, e := chargeForm(strings.Join(asForm, "&")); e == nil || e.Param != "metadata" {
		t.Errorf("46 pairs as a form: %v", e)
	}
}

// A charge that is being made has nothing that could be taken away: what is unset is the same
// as what is left out. Pairs without any stay what they were.
func TestWhatIsUnsetIsLeftOut(t *testing.T) {
	json := func(s string) string { p, e := chargeJSON(s); return form(t, s, p, e) }
	urlencoded := func(s string) string { p, e := chargeForm(s); return form(t, s, p, e) }
	for _, name := range []string{"description", "receipt_email", "statement_descriptor_suffix"} {
		want := json(`{"amount":1}`)
		for _, got := range []string{
			json(`{"amount":1,"` + name + `":null}`), json(`{"amount":1,"` + name + `":""}`), urlencoded("amount=1&" + name + "="),
		} {
			if got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
	}
	for _, body := range []string{`{"metadata":null}`, `{"metadata":{}}`} {
		if got := json(body); got != `{"metadata":{}}` || got != urlencoded("metadata=") {
			t.Errorf("%s: got %s", body, got)
		}
	}
}

// Stripe's libraries send numbers and booleans as texts. In JSON they are the texts that they are
// written as, whole, and an empty value is that of a pair which is not wanted.
func TestMetadataIsText(t *testing.T) {
	const digits = "9223372036854775807.10e5"
	p, e := chargeJSON(`{"metadata":{"n":` + digits + `,"yes":true,"no":false,"a":"x","gone":null,"empty":""}}`)
	if e != nil {
		t.Fatal(e)
	}
	if want := map[string]string{"n": digits, "yes": "true", "no": "false", "a": "x"}; !maps.Equal(p.pairs("metadata"), want) {
		t.Errorf("got %v, want %v", p.pairs("metadata"), want)
	}
	same, e := chargeForm("metadata[n]=" + digits + "&metadata[yes]=true&metadata[no]=false&metadata[a]=x&metadata[gone]=&metadata[empty]=")
	if e != nil || string(same.canonical()) != string(p.canonical()) {
		t.Errorf("JSON has the form %s, a form %s %v", p.canonical(), same.canonical(), e)
	}
}

func TestALongUnknownNameIsNotRepeatedWhole(t *testing.T) {
	_, e := chargeJSON(`{"` + strings.Repeat("é", 5000) + `":1}`)
	if e == nil || len(e.Param) > 100+len("…") || len(e.Message) > 2*100+50 {
		t.Errorf("got %v", e)
	}
}

// The same parameters are one request, however they are written; other parameters are another.
func TestCanonicalForm(t *testing.T) {
	json := func(s string) string { p, e := chargeJSON(s); return form(t, s, p, e) }
	urlencoded := func(s string) string { p, e := chargeForm(s); return form(t, s, p, e) }
	want := `{"amount":2000,"capture":false,"currency":"usd","metadata":{"a":"1","b":"é \"/"},"source":"tok_visa"}`
	for _, got := range []string{
		json(`{"amount":2000,"capture":false,"currency":"usd","metadata":{"a":"1","b":"é \"/"},"source":"tok_visa"}`),
		json(" {\n\"source\":\"tok_visa\",\t\"metadata\":{\"b\":\"\\u00e9 \\\"\\/\",\"a\":\"\\u0031\"},\"currency\":\"usd\",\"capture\":false,\"amount\":2000}\r\n"),
		urlencoded(`metadata[b]=%C3%A9+%22%2F&metadata[a]=1&source=tok_visa&currency=usd&capture=false&amount=2000`),
		urlencoded(`amount=2000&currency=usd&source=tok_visa&capture=false&metadata%5Ba%5D=%31&metadata%5Bb%5D=é "/`),
	} {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if json(`{"metadata":{}}`) != urlencoded("metadata=") || json(`{"metadata":{"a":""}}`) != urlencoded("metadata[a]=") {
		t.Error("empty metadata differs between JSON and form")
	}
	different := []string{
		json(b0), json(`{"amount":2000,"currency":"usd","source":"tok_visa","capture":true}`), json(`{"amount":2000,"currency":"USD","source":"tok_visa"}`),
		json(`{"amount":2001,"currency":"usd","source":"tok_visa"}`), json(`{"amount":2000,"currency":"usd","source":"tok_visa","metadata":{}}`),
		json(`{"amount":2000,"currency":"usd","customer":"tok_visa"}`), json(`{"amount":9007199254740993}`), json(`{"amount":9007199254740992}`),
		json(`{"description":"é"}`), json("{\"description\":\"e\u0301\"}"), json(`{"description":"\ufffd"}`), json(`{"description":"{}"}`), json(`{"metadata":{"a":"1"}}`), `{}`,
	}
	for i, a := range different {
		for _, b := range different[:i] {
			if a == b {
				t.Errorf("two requests with one form: %s", a)
			}
		}
	}
}

func form(t *testing.T, in string, p *parameters, e *problem.Error) string {
	t.Helper()
	if e != nil {
		t.Fatalf("%s: %v", in, e)
	}
	return string(p.canonical())
}

func TestQueriesThatAreRefused(t *testing.T) {
	checkRefusals(t, []refusal{
		{"unknown", "limits=1", "parameter_unknown", "limits"},
		{"another case", "Limit=1", "parameter_unknown", "Limit"},
		{"twice", "limit=1&limit=2", "parameter_duplicate", "limit"},
		{"unknown bound", "created[ge]=1", "parameter_unknown", "created[ge]"},
		{"bound twice", "created[gt]=1&created[gt]=2", "parameter_duplicate", "created[gt]"},
		{"plain created that is no integer", "created=1.5", "parameter_invalid_integer", "created"},
		{"plain created twice", "created=1&created=2", "parameter_duplicate", "created"},
		{"plain created, then a bound", "created=1&created[gt]=2", "parameter_duplicate", "created"},
		{"a bound, then plain created", "created[gt]=2&created=1", "parameter_duplicate", "created"},
		{"bound that is no integer", "created[gt]=1.5", "parameter_invalid_integer", "created[gt]"},
		{"NUL in limit", "limit=%00", "parameter_invalid_integer", "limit"},
		{"NUL in a cursor", "starting_after=%00", "parameter_invalid", "starting_after"},
		{"invalid UTF-8", "customer=%ff", "parameter_invalid", "customer"},
		{"invalid name", "%ff=1", "query_malformed", ""},
		{"semicolon", "limit=1;status=x", "query_malformed", ""},
	}, func(in string) (*parameters, *problem.Error) {
		return decodeForm(in, listShape, problem.QueryMalformed)
	})
}

func TestCanonicalQuerySortsPairs(t *testing.T) {
	for in, want := range map[string]string{"": "", "a=1": "a=1", "b=1&a=2": "a=2&b=1", "a=2&a=1": "a=1&a=2", "a=%zz&;": ";&a=%zz"} {
		if got := canonicalQuery(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestChargeParams(t *testing.T) {
	read := func(in string) *problem.Error {
		p, e := chargeJSON(in)
		if e != nil {
			t.Fatal(e)
		}
		_, e = chargeParams(p, "")
		return e
	}
	for _, tc := range []refusal{
		{"nothing", `{}`, "parameter_missing", "amount"},
		{"no currency", `{"amount":1}`, "parameter_missing", "currency"},
		{"zero", `{"amount":0,"currency":"usd","source":"tok_visa"}`, "parameter_invalid_integer", "amount"},
		{"negative", `{"amount":-100,"currency":"usd","source":"tok_visa"}`, "parameter_invalid_integer", "amount"},
		{"too much", `{"amount":100000000,"currency":"usd","source":"tok_visa"}`, "amount_too_large", "amount"},
		{"too many rupiah", `{"amount":1000000000000,"currency":"idr","source":"tok_visa"}`, "amount_too_large", "amount"},
		{"too many rupees", `{"amount":1000000000,"currency":"inr","source":"tok_visa"}`, "amount_too_large", "amount"},
		{"more than an integer", `{"amount":` + strings.Repeat("9", 400) + `,"currency":"idr","source":"tok_visa"}`, "amount_too_large", "amount"},
		{"much too little", `{"amount":-` + strings.Repeat("9", 400) + `,"currency":"idr","source":"tok_visa"}`, "parameter_invalid_integer", "amount"},
		{"a Kelvin sign is no k", `{"amount":1,"currency":"\u212arw","source":"tok_visa"}`, "invalid_currency", "currency"},
		{"no payer", `{"amount":1,"currency":"usd"}`, "parameter_missing", "source"},
	} {
		if e := read(tc.in); e == nil || e.Code.String() != tc.code || e.Param != tc.param || e.Code.Advice() != "fix_and_use_new_key" {
			t.Errorf("%s: got %v", tc.name, e)
		}
	}
	p, _ := chargeJSON(`{"amount":1,"currency":"KRW","source":"tok_visa","metadata":{"a":"b"}}`)
	got, e := chargeParams(p, "")
	if e != nil || got.Currency != "krw" || !got.Capture || got.Metadata["a"] != "b" {
		t.Errorf("got %+v, %v", got, e)
	}
	p, _ = chargeForm(`amount=1&currency=usd&customer=cus_1&capture=false`)
	if got, e = chargeParams(p, ""); e != nil || got.Capture || got.Customer != "cus_1" {
		t.Errorf("got %+v, %v", got, e)
	}
}
