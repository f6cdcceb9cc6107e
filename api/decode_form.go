package api

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"paidonce/problem"
)

// decodeForm reads application/x-www-form-urlencoded by the table; queries are read by it as well.
// malformed is the code of the error for what cannot be parsed. Each pair is name=value, or
// name[member]=value as Stripe's libraries write it; `metadata=` means no pairs at all.
// Percent-encoding must be complete, semicolons must be encoded, and a name must not occur twice.
// Other characters need not be encoded.
func decodeForm(form string, s shape, malformed problem.Code) (*parameters, *problem.Error) {
	p := newParameters(s)
	if form == "" {
		return p, nil
	}
	if strings.IndexByte(form, ';') >= 0 {
		return nil, malformed.Of("", "Semicolons must be percent-encoded (%%3B).")
	}
	for more := true; more; {
		var pair string
		pair, form, more = strings.Cut(form, "&")
		rawName, rawValue, found := strings.Cut(pair, "=")
		name, ok := unescape(rawName)
		if !ok || name == "" || !found {
			return nil, malformed.Of("",
				"Each parameter must be name=value, percent-encoded, in UTF-8.")
		}
		val, ok := unescape(rawValue)
		if !ok {
			return nil, invalidParameter(name, "The value of %s must be percent-encoded UTF-8.",
				problem.Printable(name))
		}
		if e := p.addPair(name, val); e != nil {
			return nil, e
		}
	}
	return p, nil
}

// cut finds the field that a name is within, and returns what follows its name and a bracket.
func (p *parameters) cut(name string) (i int, rest string, inside bool) {
	for i := range p.shape {
		of, found := strings.CutPrefix(name, p.shape[i].name)
		if found && strings.HasPrefix(of, "[") {
			return i, of[1:], true
		}
	}
	return -1, "", false
}

func (p *parameters) addPair(name, val string) *problem.Error {
	i, rest, inside := p.cut(name)
	if !inside {
		v, f, e := p.open(name)
		if e != nil {
			return e
		}
		return v.setForm(f, val)
	}
	f := &p.shape[i]
	inner, closed := strings.CutSuffix(rest, "]")
	switch {
	case f.kind == record:
		r, e := p.openRecord(i)
		if e != nil {
			return e
		}
		return r.addPair(name, val)
	case f.kind == texts && closed:
		return p.addFormEntry(i, inner, val)
	case f.kind == texts:
		return invalidParameter(name, "%s must be written %s[].", problem.Printable(name), f.name)
	case f.kind != pairs && f.kind != bounds:
		return unknownParameter(p.shape, name)
	case !closed || inner == "" || strings.ContainsAny(inner, "[]"):
		return invalidParameter(name, "%s must be written %s[name].", problem.Printable(name),
			f.name)
	}
	v := &p.values[i]
	// metadata= and metadata[a]=1, created=1 and created[gt]=1
	if p.given[i] && (len(v.members) == 0 || f.kind == bounds && v.members[0].name == "") {
		return duplicateParameter(f.name)
	}
	p.given[i], v.kind = true, f.kind
	return v.setMember(p.shape, f, inner, val)
}

// addFormEntry reads name[]=value, or name[0]=value as Stripe's libraries write it: with indices in
// their order, without gaps.
func (p *parameters) addFormEntry(i int, index, val string) *problem.Error {
	f, v := &p.shape[i], &p.values[i]
	if index != "" && index != strconv.Itoa(len(v.members)) {
		return invalidParameter(memberName(f.name, index),
			"%s must be written %s[] or with indices from 0, in their order.", f.name, f.name)
	}
	p.given[i], v.kind = true, f.kind
	return v.addEntry(f, val)
}

func (v *value) setForm(f *field, s string) *problem.Error {
	if f.unset && s == "" {
		v.unset = true
		return nil
	}
	switch f.kind {
	case text:
		return v.setText(f.name, s)
	case integer:
		return v.setInteger(f.name, s)
	case boolean:
		if s != "true" && s != "false" {
			return invalidParameter(f.name, "%s must be true or false.", f.name)
		}
		v.boolean = s == "true"
		return nil
	case pairs:
		if s != "" {
			return invalidParameter(f.name, "%s must be written %s[name]=value.", f.name, f.name)
		}
		return nil
	case texts:
		return invalidParameter(f.name, "%s must be written %s[]=value, once for each.", f.name,
			f.name)
	case record:
		return invalidParameter(f.name, "%s must be written %s=value.", f.name, f.fields[0].name)
	default: // bounds
		n, ok := parseInteger(s)
		if !ok {
			return problem.ParameterInteger.Of(f.name,
				"%s must be a plain integer, such as 1764403200, or be written %s[%s].", f.name,
				f.name, strings.Join(f.members, "], "+f.name+"["))
		}
		v.members = append(v.members, member{integer: n})
		return nil
	}
}

func (v *value) setMember(s shape, f *field, name, val string) *problem.Error {
	full := memberName(f.name, name)
	m := member{name: name, text: val}
	if e := checkText(f.name, name); e != nil {
		return e
	}
	if e := checkText(full, val); e != nil {
		return e
	}
	if f.kind == bounds {
		if !slices.Contains(f.members, name) {
			return unknownParameter(s, full)
		}
		n, ok := parseInteger(val)
		if !ok {
			return problem.ParameterInteger.Of(full,
				"%s must be a plain integer, such as 1764403200.", full)
		}
		m.text, m.integer = "", n
	}
	return v.addMember(f, m)
}

// unescape undoes percent-encoding and plus signs. It reports false for a broken escape and for
// what is not UTF-8.
func unescape(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s, utf8.ValidString(s)
	}
	s, err := url.QueryUnescape(s)
	return s, err == nil && utf8.ValidString(s)
}

// canonicalQuery returns the query for fingerprints: its pairs as they were sent, sorted.
func canonicalQuery(raw string) string {
	if strings.IndexByte(raw, '&') < 0 {
		return raw
	}
	pairs := strings.Split(raw, "&")
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}
