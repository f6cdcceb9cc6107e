package api

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"paidonce/charges"
)

// kind is the type of a parameter.
type kind uint8

const (
	text    kind = iota // non-empty: what is not wanted is left out
	integer             // plain decimal, within int64
	boolean
	pairs  // free names, texts as values
	bounds // fixed names, integers as values
	texts  // non-empty texts, in their order; their members have no names
)

// field is a parameter that an operation takes.
type field struct {
	name    string
	kind    kind
	members []string // the names within bounds
}

// shape is the table of an operation's parameters. It drives the decoding of JSON, forms and queries alike.
type shape []field

// member is one entry of pairs or bounds.
type member struct {
	name    string
	text    string
	integer int64
}

// value is a typed value, of its field's kind.
type value struct {
	kind    kind
	text    string
	integer int64
	boolean bool
	members []member
}

// parameters is what a request says, after typing: one value a name, in the order of the shape. Whether it was written as JSON or as a
// form can no longer be seen.
type parameters struct {
	shape  shape
	values []value
	given  []bool
}

func newParameters(s shape) *parameters {
	return &parameters{shape: s, values: make([]value, len(s)), given: make([]bool, len(s))}
}

// index returns the place of a name in the shape, or -1.
func (p *parameters) index(name string) int {
	for i := range p.shape {
		if p.shape[i].name == name {
			return i
		}
	}
	return -1
}

// get returns the value of a name; given is false when the request does not say anything about it.
func (p *parameters) get(name string) (v *value, given bool) {
	i := p.index(name)
	if i < 0 || !p.given[i] {
		return nil, false
	}
	return &p.values[i], true
}

// open returns the place for a parameter that is about to be read, once.
func (p *parameters) open(name string) (*value, *field, *apiError) {
	i := p.index(name)
	if i < 0 {
		return nil, nil, unknownParameter(p.shape, name)
	}
	if p.given[i] {
		return nil, nil, duplicateParameter(name)
	}
	p.given[i] = true
	p.values[i].kind = p.shape[i].kind
	return &p.values[i], &p.shape[i], nil
}

// addMember puts an entry into pairs or bounds. The number of entries is bounded here, so that looking for duplicates stays cheap.
func (v *value) addMember(f *field, m member) *apiError {
	if f.kind == pairs {
		switch {
		case m.name == "" || strings.ContainsAny(m.name, "[]"):
			return invalidParameter(f.name, "The keys of %s must not be empty, nor contain square brackets.", f.name)
		case len(v.members) == charges.MetadataPairsMax:
			return invalidParameter(f.name, "%s may have at most %d pairs.", f.name, charges.MetadataPairsMax)
		}
	}
	for i := range v.members {
		if v.members[i].name == m.name {
			return duplicateParameter(memberName(f.name, m.name))
		}
	}
	v.members = append(v.members, m)
	return nil
}

// canonical returns the canonical form: a JSON object with sorted names, decimal integers and minimal escapes. Two requests with
// the same parameters have the same form, whatever their spelling; a parameter that is left out differs from one that has its default.
func (p *parameters) canonical() []byte {
	// The shapes are sorted by name (a test holds them to it), so only members need sorting.
	b := make([]byte, 0, canonicalUsual)
	b = append(b, '{')
	for i := range p.shape {
		if !p.given[i] {
			continue
		}
		b = appendSeparator(b)
		b = appendText(b, p.shape[i].name)
		b = append(b, ':')
		b = p.values[i].appendCanonical(b)
	}
	return append(b, '}')
}

func appendSeparator(b []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return b
}

// appendText quotes s, which is valid UTF-8: decoding has seen to that.
func appendText(b []byte, s string) []byte {
	b, err := jsontext.AppendQuote(b, s)
	if err != nil {
		panic("canonical form of text that was not checked: " + err.Error())
	}
	return b
}

// canonicalUsual is the room, in bytes, for the canonical form of a usual request; larger ones grow it.
const canonicalUsual = 256

// entriesMax bounds a list of texts.
const entriesMax = 100

// addEntry puts a text at the end of texts.
func (v *value) addEntry(f *field, s string) *apiError {
	name := memberName(f.name, strconv.Itoa(len(v.members)))
	switch {
	case len(v.members) == entriesMax:
		return invalidParameter(f.name, "%s may have at most %d entries.", f.name, entriesMax)
	case s == "":
		return faultParameterEmpty.of(name, "%s is empty; leave it out instead.", name)
	}
	if e := checkText(name, s); e != nil {
		return e
	}
	v.members = append(v.members, member{text: s})
	return nil
}

// memberName is how a form names an entry, and how errors do.
func memberName(name, member string) string { return name + "[" + member + "]" }

// nameShownMax bounds what an error repeats of a name that the client made up: enough to recognise it.
const nameShownMax = 100

// shown makes a client's name fit to be repeated in an error.
func shown(name string) string {
	if len(name) > nameShownMax {
		cut := nameShownMax
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut] + "…"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(name, "\uFFFD"), "\x00", "\uFFFD")
}

func (v *value) appendCanonical(b []byte) []byte {
	switch v.kind {
	case text:
		return appendText(b, v.text)
	case integer:
		return strconv.AppendInt(b, v.integer, 10)
	case boolean:
		return strconv.AppendBool(b, v.boolean)
	case texts:
		b = append(b, '[')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(b, m.text)
		}
		return append(b, ']')
	default:
		sorted := slices.Clone(v.members)
		slices.SortFunc(sorted, func(x, y member) int { return strings.Compare(x.name, y.name) })
		b = append(b, '{')
		for _, m := range sorted {
			b = appendSeparator(b)
			b = appendText(b, m.name)
			b = append(b, ':')
			if v.kind == bounds {
				b = strconv.AppendInt(b, m.integer, 10)
				continue
			}
			b = appendText(b, m.text)
		}
		return append(b, '}')
	}
}

// text returns a text, empty when it is not given.
func (p *parameters) text(name string) string {
	if v, given := p.get(name); given {
		return v.text
	}
	return ""
}

// integer returns an integer, 0 when it is not given.
func (p *parameters) integer(name string) int64 {
	if v, given := p.get(name); given {
		return v.integer
	}
	return 0
}

// pairs returns pairs, nil when they are not given.
func (p *parameters) pairs(name string) map[string]string {
	v, given := p.get(name)
	if !given {
		return nil
	}
	m := make(map[string]string, len(v.members))
	for _, e := range v.members {
		m[e.name] = e.text
	}
	return m
}
