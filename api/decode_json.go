package api

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// decoders are reused: a request's body is read by exactly one at a time.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// decodeJSON reads a JSON object by the table. It is strict where two readers could understand a document differently: invalid UTF-8,
// broken surrogates, names given twice or in another case, null, numbers that are not plain integers, and anything after the object are
// refused. No value nests deeper than the table says, so there is nothing to recurse into. An empty body says nothing about any parameter.
func decodeJSON(body []byte, s shape) (*parameters, *apiError) {
	p := newParameters(s)
	if len(body) == 0 {
		return p, nil
	}
	d := decoders.Get().(*jsontext.Decoder) //nolint:errcheck // nothing else is in the pool
	defer decoders.Put(d)
	// Duplicates are found by ourselves, to say which name it is.
	d.Reset(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(false))
	defer d.Reset(strings.NewReader("")) // lets go of the body
	t, err := d.ReadToken()
	if err != nil {
		return nil, malformedJSON(err)
	}
	if t.Kind() != jsontext.KindBeginObject {
		return nil, faultBodyMalformed.of("", "The body must be a JSON object.")
	}
	for {
		t, err := d.ReadToken()
		if err != nil {
			return nil, malformedJSON(err)
		}
		if t.Kind() == jsontext.KindEndObject {
			break
		}
		v, f, e := p.open(t.String())
		if e != nil {
			return nil, e
		}
		if e := readJSON(d, v, f); e != nil {
			return nil, e
		}
	}
	if _, err := d.ReadToken(); err == nil {
		return nil, faultBodyMalformed.of("", "The body must be one JSON object, with nothing after it.")
	} else if !errors.Is(err, io.EOF) {
		return nil, malformedJSON(err)
	}
	return p, nil
}

func readJSON(d *jsontext.Decoder, v *value, f *field) *apiError {
	t, err := d.ReadToken()
	if err != nil {
		return malformedJSON(err)
	}
	if t.Kind() == jsontext.KindNull {
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
			return faultParameterInteger.of(f.name, "%s must be an integer.", f.name)
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
	default:
		return invalidParameter(f.name, "%s cannot be given here.", f.name)
	}
}

func readTexts(d *jsontext.Decoder, v *value, f *field) *apiError {
	for {
		t, err := d.ReadToken()
		if err != nil {
			return malformedJSON(err)
		}
		name := memberName(f.name, strconv.Itoa(len(v.members)))
		switch t.Kind() {
		case jsontext.KindEndArray:
			if len(v.members) == 0 {
				return faultParameterEmpty.of(f.name, "%s is empty; leave it out instead.", f.name)
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

func readPairs(d *jsontext.Decoder, v *value, f *field) *apiError {
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
		case jsontext.KindString:
		case jsontext.KindNull:
			return nullParameter(name)
		default:
			return invalidParameter(name, "%s must be a string.", shown(name))
		}
		m.text = t.String()
		if e := checkText(name, m.text); e != nil {
			return e
		}
		if e := v.addMember(f, m); e != nil {
			return e
		}
	}
}

// malformedJSON says where, and nothing of what the decoder says: its words are not a part of the interface.
func malformedJSON(err error) *apiError {
	e := faultBodyMalformed.of("", "The body is not one well-formed JSON object in UTF-8.")
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		e = faultBodyMalformed.of("", "The body is not one well-formed JSON object in UTF-8: see byte %d.", syntax.ByteOffset)
	}
	return e
}

func nullParameter(name string) *apiError {
	return invalidParameter(name, "%s is null; leave it out instead.", shown(name))
}

// checkText refuses what the database cannot keep as text. Invalid UTF-8 must have been refused before.
func checkText(name, s string) *apiError {
	if strings.IndexByte(s, 0) >= 0 {
		return invalidParameter(name, "%s must not contain the character NUL.", shown(name))
	}
	return nil
}

func (v *value) setText(name, s string) *apiError {
	if s == "" {
		return faultParameterEmpty.of(name, "%s is empty; leave it out instead.", name)
	}
	if e := checkText(name, s); e != nil {
		return e
	}
	v.text = s
	return nil
}

func (v *value) setInteger(name, s string) *apiError {
	n, ok := parseInteger(s)
	if !ok {
		return faultParameterInteger.of(name, "%s must be a plain integer, such as 2000.", name)
	}
	v.integer = n
	return nil
}

// integerDigitsMax is the length of the longest int64, with its sign.
const integerDigitsMax = 20

// parseInteger reads an integer in its one spelling: no fraction, exponent, plus sign, leading zero or negative zero.
func parseInteger(s string) (int64, bool) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(s) > integerDigitsMax || (digits[0] == '0' && s != "0") {
		return 0, false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
