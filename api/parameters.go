package api

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"paidonce/charges"
	"paidonce/problem"
)

// kind is the type of a parameter.
type kind uint8

const (
	text    kind = iota
	integer      // plain decimal, within int64
	boolean
	pairs  // free names, texts as values
	bounds // fixed names, integers as values; or one integer, which is a member without a name
	texts  // non-empty texts, in their order; their members have no names
	record // fields of its own, whose names are those that forms have: name[member]
)

// field is a parameter that an operation takes.
type field struct {
	name    string
	kind    kind
	members []string // the names within bounds
	fields  shape    // of a record
	// unset: may be empty or null, which takes away what is there; where there is nothing, it is as
	// if it had been left out. What decides which money moves from whom is never unset.
	unset bool
	most  int // of pairs and texts: how many there may be

	// Limits, of queries only, for [parameters.checkLimits]: the domain knows those of bodies. 0
	// and nil: none.
	min, max  int64
	fallback  int64 // what stands for an integer that is not given
	maxLength int   // characters

	enum []string // the texts that there are, of texts in bodies as well; nil: any
}

// shape is the table of what a query or a body may contain, a body's in the order of the names. It
// drives the decoding of JSON, forms and queries alike.
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
	unset   bool // it was sent empty or null, where that takes away what is there
	members []member
	record  *parameters
}

// parameters are the typed parameters of a request: one value for each name, in the order of the
// shape. They are the same whether they were sent as JSON or as a form.
type parameters struct {
	shape  shape
	values []value
	given  []bool
}

func newParameters(s shape) *parameters {
	return &parameters{shape: s, values: make([]value, len(s)), given: make([]bool, len(s))}
}

// index returns the position of a name in the shape, or -1.
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

// open returns the value of a parameter that is about to be read, once.
func (p *parameters) open(name string) (*value, *field, *problem.Error) {
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

// addMember puts an entry into pairs or bounds. The number of entries is bounded here, so that
// looking for duplicates stays cheap.
func (v *value) addMember(f *field, m member) *problem.Error {
	if f.kind == pairs {
		switch {
		case m.name == "" || strings.ContainsAny(m.name, "[]"):
			return invalidParameter(f.name,
				"The keys of %s must not be empty, nor contain square brackets.", f.name)
		case len(v.members) == f.most:
			return tooManyPairs(f)
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

// tooManyPairs says why there are fewer pairs than Stripe's libraries promise, where there are.
func tooManyPairs(f *field) *problem.Error {
	if f.most != charges.MetadataPairsMax {
		return invalidParameter(f.name, "%s may have at most %d pairs.", f.name, f.most)
	}
	return invalidParameter(f.name,
		"%s may have at most %d pairs: the payment provider keeps 50, and five are Paidonce's own.",
		f.name, f.most)
}

// dropUnset makes what was unset the same as what was left out. Pairs stay, without any.
func (p *parameters) dropUnset() {
	for i := range p.values {
		v := &p.values[i]
		if v.unset {
			v.unset = false
			p.given[i] = p.shape[i].kind == pairs
		}
		if v.record != nil {
			v.record.dropUnset()
		}
	}
}

// checkLimits refuses what is not within the limits of its field.
func (p *parameters) checkLimits() *problem.Error {
	for i := range p.shape {
		f, v := &p.shape[i], &p.values[i]
		switch {
		case !p.given[i], f.kind == texts: // what texts may be was checked with each
		case f.max > 0 && (v.integer < f.min || v.integer > f.max):
			return problem.ParameterInteger.Of(f.name, "%s must be between %d and %d.", f.name,
				f.min, f.max)
		case f.maxLength > 0 && utf8.RuneCountInString(v.text) > f.maxLength:
			return invalidParameter(f.name, "%s may have at most %d characters.", f.name,
				f.maxLength)
		case f.enum != nil && !slices.Contains(f.enum, v.text):
			return notOneOf(f.name, f.enum)
		}
	}
	return nil
}

func notOneOf(name string, enum []string) *problem.Error {
	last := len(enum) - 1
	return invalidParameter(name, "%s must be %s or %s.", name, strings.Join(enum[:last], ", "),
		enum[last])
}

// canonical returns the canonical form: a JSON object with sorted names, decimal integers and
// minimal escapes. Two requests with the same parameters have the same form, whatever their
// spelling; a parameter that is left out differs from one that has its default.
func (p *parameters) canonical() []byte {
	// The shapes are sorted by name (a test holds them to it), so only members need sorting.
	b := make([]byte, 0, canonicalUsual)
	b = append(b, '{')
	for i := range p.shape {
		if !p.given[i] {
			continue
		}
		b = appendSeparator(b)
		b = appendText(b, shortName(p.shape[i].name))
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

// canonicalUsual is the initial capacity, in bytes, for a canonical form: enough for a usual
// request.
const canonicalUsual = 256

// addEntry puts a text at the end of texts.
func (v *value) addEntry(f *field, s string) *problem.Error {
	name := memberName(f.name, strconv.Itoa(len(v.members)))
	switch {
	case len(v.members) == f.most:
		return invalidParameter(f.name, "%s may have at most %d entries.", f.name, f.most)
	case s == "":
		return emptyParameter(name)
	case f.enum != nil && !slices.Contains(f.enum, s):
		return notOneOf(name, f.enum)
	}
	if e := checkText(name, s); e != nil {
		return e
	}
	v.members = append(v.members, member{text: s})
	return nil
}

// memberName is how a form names an entry, and how errors do.
func memberName(name, member string) string { return name + "[" + member + "]" }

func (v *value) appendCanonical(b []byte) []byte {
	if v.unset {
		return append(b, "null"...)
	}
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
	case record:
		return append(b, v.record.canonical()...)
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

// integer returns an integer; when it is not given, its fallback, which usually is 0.
func (p *parameters) integer(name string) int64 {
	i := p.index(name)
	switch {
	case i < 0:
		return 0
	case !p.given[i]:
		return p.shape[i].fallback
	}
	return p.values[i].integer
}

// boolean returns a boolean, false when it is not given.
func (p *parameters) boolean(name string) bool {
	v, given := p.get(name)
	return given && v.boolean
}

// flag returns a boolean, nil when it is not given.
func (p *parameters) flag(name string) *bool {
	if v, given := p.get(name); given {
		return &v.boolean
	}
	return nil
}

// texts returns texts in their order, nil when they are not given.
func (p *parameters) texts(name string) []string {
	v, given := p.get(name)
	if !given {
		return nil
	}
	list := make([]string, len(v.members))
	for i := range v.members {
		list[i] = v.members[i].text
	}
	return list
}

// expands reports whether an object of the answer is to be shown in full. openapi.yaml says what
// there is to expand; in lists, the names begin with "data.", as at Stripe.
func (p *parameters) expands(object string) bool {
	return slices.ContainsFunc(p.texts("expand"), func(name string) bool {
		return strings.TrimPrefix(name, "data.") == object
	})
}

// changes returns pairs as they were sent, those with an empty text among them, which take a pair
// away; all reports that all pairs are taken away.
func (p *parameters) changes(name string) (m map[string]string, all bool) {
	v, given := p.get(name)
	if !given {
		return nil, false
	}
	m = make(map[string]string, len(v.members))
	for _, e := range v.members {
		m[e.name] = e.text
	}
	return m, v.unset
}

// pairs returns pairs, without those whose text is empty, which means that they are not wanted. It
// returns nil when none are given.
func (p *parameters) pairs(name string) map[string]string { //nolint:unparam // as the other kinds are read
	v, given := p.get(name)
	if !given {
		return nil
	}
	m := make(map[string]string, len(v.members))
	for _, e := range v.members {
		if e.text != "" {
			m[e.name] = e.text
		}
	}
	return m
}
