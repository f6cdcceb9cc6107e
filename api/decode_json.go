package api

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"paidonce/problem"
)

// decoders are reused: a request's body is read by exactly one at a time.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// decodeJSON reads a JSON object by the table. It is strict where two readers could understand a
// document differently: invalid UTF-8, broken surrogates, names given twice or in another case,
// numbers that are not plain integers, and anything after the object are refused. No value
// nests deeper than the table says, so there is nothing to recurse into. An empty body says nothing
// about any parameter.
func decodeJSON(body []byte, s shape) (*parameters, *problem.Error) {
	p := newParameters(s)
	if len(body) == 0 {
		return p, nil
	}
	d := decoders.Get().(*jsontext.Decoder) //nolint:errcheck // nothing else is in the pool
	defer decoders.Put(d)
	// Duplicates are found here and not by the decoder, so that the error can name the parameter.
	d.Reset(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(false))
	defer d.Reset(strings.NewReader("")) // lets go of the body
	t, err := d.ReadToken()
	if err != nil {
		return nil, malformedJSON(err)
	}
	if t.Kind() != jsontext.KindBeginObject {
		return nil, problem.BodyMalformed.Of("", "The body must be a JSON object.")
	}
	if e := p.readMembers(d, func(name string) string { return name }); e != nil {
		return nil, e
	}
	if _, err := d.ReadToken(); err == nil {
		return nil, problem.BodyMalformed.Of("",
			"The body must be one JSON object, with nothing after it.")
	} else if !errors.Is(err, io.EOF) {
		return nil, malformedJSON(err)
	}
	return p, nil
}

// readMembers reads the rest of an object. named returns the parameter of a member.
func (p *parameters) readMembers(
	d *jsontext.Decoder, named func(member string) string,
) *problem.Error {
	for {
		t, err := d.ReadToken()
		if err != nil {
			return malformedJSON(err)
		}
		if t.Kind() == jsontext.KindEndObject {
			return nil
		}
		v, f, e := p.open(named(t.String()))
		if e != nil {
			return e
		}
		if e := readJSON(d, v, f); e != nil {
			return e
		}
	}
}

func readJSON(d *jsontext.Decoder, v *value, f *field) *problem.Error {
	t, err := d.ReadToken()
	if err != nil {
		return malformedJSON(err)
	}
	switch {
	case t.Kind() == jsontext.KindNull && f.unset,
		t.Kind() == jsontext.KindString && t.String() == "" && f.unset:
		v.unset = true
		return nil
	case t.Kind() == jsontext.KindNull:
		return nullParameter(f.name)
	}
	switch f.kind {
	case text:
		if t.Kind() != jsontext.KindString {
			return invalidParameter(f.name, "%s must be a string.", f.name)
		}
		return v.setText(f.name, t.String())
	case integer:
		if t.Kind() != jsontext.KindNumber {
			return problem.ParameterInteger.Of(f.name, "%s must be an integer.", f.name)
		}
		return v.setInteger(f.name, t.String())
	case boolean:
		if t.Kind() != jsontext.KindTrue && t.Kind() != jsontext.KindFalse {
			return invalidParameter(f.name, "%s must be true or false.", f.name)
		}
		v.boolean = t.Bool()
		return nil
	case pairs:
		if t.Kind() != jsontext.KindBeginObject {
			return invalidParameter(f.name, "%s must be an object.", f.name)
		}
		return readPairs(d, v, f)
	case texts:
		if t.Kind() != jsontext.KindBeginArray {
			return invalidParameter(f.name, "%s must be an array of strings.", f.name)
		}
		return readTexts(d, v, f)
	case record:
		if t.Kind() != jsontext.KindBeginObject {
			return invalidParameter(f.name, "%s must be an object.", f.name)
		}
		v.record = newParameters(f.fields)
		return v.record.readMembers(d, func(member string) string {
			return memberName(f.name, member)
		})
	default:
		return invalidParameter(f.name, "%s cannot be given here.", f.name)
	}
}

func readTexts(d *jsontext.Decoder, v *value, f *field) *problem.Error {
	for {
		t, err := d.ReadToken()
		if err != nil {
			return malformedJSON(err)
		}
		name := memberName(f.name, strconv.Itoa(len(v.members)))
		switch t.Kind() {
		case jsontext.KindEndArray:
			if len(v.members) == 0 {
				return emptyParameter(f.name)
			}
			return nil
		case jsontext.KindString:
		case jsontext.KindNull:
			return nullParameter(name)
		default:
			return invalidParameter(name, "%s must be a string.", name)
		}
		if e := v.addEntry(f, t.String()); e != nil {
			return e
		}
	}
}

func readPairs(d *jsontext.Decoder, v *value, f *field) *problem.Error {
	for {
		t, err := d.ReadToken()
		if err != nil {
			return malformedJSON(err)
		}
		if t.Kind() == jsontext.KindEndObject {
			return nil
		}
		m := member{name: t.String()}
		if e := checkText(f.name, m.name); e != nil {
			return e
		}
		t, err = d.ReadToken()
		if err != nil {
			return malformedJSON(err)
		}
		name := memberName(f.name, m.name)
		switch t.Kind() {
		// A number is the text that it is written as, with all of its digits, as in a form.
		case jsontext.KindString, jsontext.KindNumber, jsontext.KindTrue, jsontext.KindFalse:
			m.text = t.String()
		case jsontext.KindNull: // as the empty text
		default:
			return invalidParameter(name, "%s must be a string.", problem.Printable(name))
		}
		if e := checkText(name, m.text); e != nil {
			return e
		}
		if e := v.addMember(f, m); e != nil {
			return e
		}
	}
}

// malformedJSON says where the error is. It does not repeat the decoder's words, which are no part
// of the API.
func malformedJSON(err error) *problem.Error {
	e := problem.BodyMalformed.Of("", "The body is not one well-formed JSON object in UTF-8.")
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		e = problem.BodyMalformed.Of("",
			"The body is not one well-formed JSON object in UTF-8: see byte %d.", syntax.ByteOffset)
	}
	return e
}

func emptyParameter(name string) *problem.Error {
	return problem.ParameterEmpty.Of(name, "%s is empty; leave it out instead.", name)
}

func nullParameter(name string) *problem.Error {
	return invalidParameter(name, "%s is null; leave it out instead.", problem.Printable(name))
}

// checkText refuses what the database cannot keep as text. Invalid UTF-8 must have been refused
// before.
func checkText(name, s string) *problem.Error {
	if strings.IndexByte(s, 0) >= 0 {
		return invalidParameter(name, "%s must not contain the character NUL.",
			problem.Printable(name))
	}
	return nil
}

func (v *value) setText(name, s string) *problem.Error {
	if s == "" {
		return emptyParameter(name)
	}
	if e := checkText(name, s); e != nil {
		return e
	}
	v.text = s
	return nil
}

// setInteger reads an integer. One that is too large for its type is the largest there is, so that
// it is refused like any other that is too large.
func (v *value) setInteger(name, s string) *problem.Error {
	n, ok := parseInteger(s)
	switch {
	case ok:
	case plainInteger(s):
		n = math.MaxInt64
		if s[0] == '-' {
			n = math.MinInt64
		}
	default:
		return problem.ParameterInteger.Of(name, "%s must be a plain integer, such as 2000.", name)
	}
	v.integer = n
	return nil
}

// plainInteger reports whether s is an integer in its one spelling, of whatever size.
func plainInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	return digits != "" && (digits[0] != '0' || s == "0") && strings.Trim(digits, "0123456789") == ""
}

// integerDigitsMax is the length of the longest int64, with its sign.
const integerDigitsMax = 20

// parseInteger reads an integer in its one spelling: no fraction, exponent, plus sign, leading zero
// or negative zero.
func parseInteger(s string) (int64, bool) {
	if len(s) > integerDigitsMax || !plainInteger(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
