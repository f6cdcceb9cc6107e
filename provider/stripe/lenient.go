package stripe

import (
	"math"
	"strconv"
	"time"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The types below decode any JSON value without an error, so that a field which another version of
// the API, or somebody's double, gives another type doesn't make an answer unreadable. Null counts
// as absent everywhere. What decides about money tells a value of another type, odd, from an absent
// one.

// text is a string. Anything else counts as absent.
type text string

func (t *text) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*t = ""
	if d.PeekKind() != '"' {
		return d.SkipValue()
	}
	token, err := d.ReadToken()
	if err == nil {
		*t = text(token.String())
	}
	return err
}

// texts are the strings of a list, up to textsMax of them. Anything else counts as absent.
type texts []text

const textsMax = 100

func (t *texts) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*t = nil
	if d.PeekKind() != '[' {
		return d.SkipValue()
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		var one text
		if err := one.UnmarshalJSONFrom(d); err != nil {
			return err
		}
		if one != "" && len(*t) < textsMax {
			*t = append(*t, one)
		}
	}
	_, err := d.ReadToken()
	return err
}

// word is a string that is compared with what was asked for: a value of another type is taken as it
// is written, which compares with nothing.
type word string

func (w *word) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*w = ""
	switch d.PeekKind() {
	case '"':
		return (*text)(w).UnmarshalJSONFrom(d)
	case 'n':
		return d.SkipValue()
	}
	v, err := d.ReadValue()
	if err == nil {
		*w = word(v)
	}
	return err
}

// ref is the id of another object, which may be there in full. Anything else counts as absent.
type ref string

func (r *ref) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*r = ""
	if d.PeekKind() != '{' {
		return (*text)(r).UnmarshalJSONFrom(d)
	}
	var in struct {
		ID text `json:"id"`
	}
	err := json.UnmarshalDecode(d, &in)
	*r = ref(in.ID)
	return err
}

// amount is a whole number, also one that is written as 2000.0.
type amount struct {
	n          int64
	given, odd bool
}

func (a *amount) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*a = amount{}
	kind := d.PeekKind()
	v, err := d.ReadValue()
	if err != nil || kind == 'n' {
		return err
	}
	if kind == '0' {
		a.n, a.given = whole(string(v))
	}
	a.odd = !a.given
	return nil
}

// maxExact is up to where a float holds every whole number.
const maxExact = 1 << 53

func whole(s string) (int64, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxExact {
		return 0, false
	}
	return int64(f), true
}

func (a *amount) or(other int64) int64 {
	if a.given {
		return a.n
	}
	return other
}

// assume gives an absent amount a value.
func (a *amount) assume(n int64) {
	if !a.given && !a.odd {
		a.n, a.given = n, true
	}
}

// lend gives other this amount, if there is one.
func (a *amount) lend(other *amount) {
	if a.given {
		other.assume(a.n)
	}
}

// is reports whether the amount isn't known to differ from n.
func (a *amount) is(n int64) bool { return !a.given || a.n == n }

// flag is true or false.
type flag struct{ on, given, odd bool }

func (f *flag) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	kind := d.PeekKind()
	*f = flag{on: kind == 't', given: kind == 't' || kind == 'f', odd: kind != 't' && kind != 'f' && kind != 'n'}
	return d.SkipValue()
}

func (f *flag) assume(on bool) {
	if !f.given && !f.odd {
		f.on, f.given = on, true
	}
}

func (f *flag) lend(other *flag) {
	if f.given {
		other.assume(f.on)
	}
}

func (f *flag) is(on bool) bool { return !f.given || f.on == on }

// moment is a time in seconds since 1970: a number, also in a string. Anything else counts as
// absent, and is the zero time.
type moment struct{ time.Time }

const lastSecond = 253402300799 // of the year 9999

func (m *moment) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	m.Time = time.Time{}
	var digits string
	switch d.PeekKind() {
	case '"':
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		digits = token.String()
	default:
		v, err := d.ReadValue()
		if err != nil {
			return err
		}
		digits = string(v)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(digits, 64)
		if err != nil || !(math.Abs(f) < maxExact) { // not a number either
			return nil //nolint:nilerr // such a time is none
		}
		n = int64(math.Floor(f))
	}
	if n > 0 && n <= lastSecond {
		m.Time = time.Unix(n, 0).UTC()
	}
	return nil
}

// object is an object, or nil for anything else.
type object[T any] struct{ at *T }

func (o *object[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	o.at = nil
	if d.PeekKind() != '{' {
		return d.SkipValue()
	}
	o.at = new(T)
	return json.UnmarshalDecode(d, o.at)
}
