package api

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"paidonce/problem"
)

// A nested parameter is an object of texts with fixed names, such as shipping. Some of its texts
// are in objects within it, which stop there. The members of its value have the names of its field,
// such as phone and address[city]. Empty and null stand for a text that is left out. An object
// within has a member of its own, without a text, once it was given: address.

// formName is how a form names what is within a parameter, and how errors do.
func formName(name, within string) string {
	group, rest, inside := strings.Cut(within, "[")
	if inside {
		rest = "[" + rest
	}
	return memberName(name, group) + rest
}

// isGroup reports whether a name is that of an object within.
func (f *field) isGroup(name string) bool {
	return slices.ContainsFunc(f.members, func(m string) bool {
		group, _, inside := strings.Cut(m, "[")
		return inside && group == name
	})
}

// addWithin puts a text into a nested value, or an object that is not there.
func (v *value) addWithin(f *field, m member) *problem.Error {
	full := formName(f.name, m.name)
	if e := checkText(full, m.text); e != nil {
		return e
	}
	for _, was := range v.members {
		if was.name == m.name || strings.HasPrefix(was.name, m.name+"[") ||
			strings.HasPrefix(m.name, was.name+"[") {
			return duplicateParameter(full)
		}
	}
	v.members = append(v.members, m)
	return nil
}

// addNested reads name[phone]=value, name[address][city]=value, or name[address]= for no address.
func (p *parameters) addNested(i int, name, val string) *problem.Error {
	f, v := &p.shape[i], &p.values[i]
	if p.given[i] && len(v.members) == 0 { // shipping= and shipping[phone]=1
		return duplicateParameter(f.name)
	}
	p.given[i], v.kind = true, nested
	for _, m := range f.members {
		group, _, inside := strings.Cut(m, "[")
		switch {
		case name == formName(f.name, m):
			return v.addWithin(f, member{name: m, text: val})
		case !inside || name != memberName(f.name, group):
		case val != "":
			return invalidParameter(name, "%s must be written %s[name]=value.", name, name)
		default:
			return v.addWithin(f, member{name: group})
		}
	}
	return unknownParameter(p.shape, name)
}

// readNested reads what is within an object that has begun: group is the name of one within
// another.
func readNested(d *jsontext.Decoder, v *value, f *field, group string) *problem.Error {
	for {
		t, err := d.ReadToken()
		if err != nil {
			return malformedJSON(err)
		}
		if t.Kind() == jsontext.KindEndObject {
			return nil
		}
		name := t.String()
		full := formName(f.name, name)
		within := name
		if group != "" {
			full, within = memberName(memberName(f.name, group), name), memberName(group, name)
		}
		isGroup := group == "" && f.isGroup(name)
		if strings.ContainsAny(name, "[]") || !isGroup && !slices.Contains(f.members, within) {
			return unknownParameter(nil, full)
		}
		if t, err = d.ReadToken(); err != nil {
			return malformedJSON(err)
		}
		switch {
		case t.Kind() == jsontext.KindNull, t.Kind() == jsontext.KindString && t.String() == "":
			if e := v.addWithin(f, member{name: within}); e != nil {
				return e
			}
		case isGroup && t.Kind() == jsontext.KindBeginObject:
			if e := v.readGroup(d, f, name); e != nil {
				return e
			}
		case isGroup:
			return invalidParameter(full, "%s must be an object.", full)
		case t.Kind() != jsontext.KindString:
			return invalidParameter(full, "%s must be a string.", full)
		default:
			if e := v.addWithin(f, member{name: within, text: t.String()}); e != nil {
				return e
			}
		}
	}
}

// readGroup reads an object within another, once.
func (v *value) readGroup(d *jsontext.Decoder, f *field, group string) *problem.Error {
	if slices.ContainsFunc(v.members, func(m member) bool { return m.name == group }) {
		return duplicateParameter(memberName(f.name, group))
	}
	if e := readNested(d, v, f, group); e != nil {
		return e
	}
	v.members = append(v.members, member{name: group})
	return nil
}

// appendNested writes the texts that there are, sorted by their names.
func (v *value) appendNested(b []byte) []byte {
	sorted := slices.Clone(v.members)
	slices.SortFunc(sorted, func(x, y member) int { return strings.Compare(x.name, y.name) })
	open := ""
	b = append(b, '{')
	for _, m := range sorted {
		if m.text == "" {
			continue
		}
		group, inner, inside := strings.Cut(m.name, "[")
		if open != "" && (!inside || group != open) {
			b, open = append(b, '}'), ""
		}
		b = appendSeparator(b)
		if inside && open == "" {
			b = append(append(appendText(b, group), ':'), '{')
			open = group
		}
		name := m.name
		if inside {
			name = strings.TrimSuffix(inner, "]")
		}
		b = appendText(append(appendText(b, name), ':'), m.text)
	}
	if open != "" {
		b = append(b, '}')
	}
	return append(b, '}')
}

// nested returns the texts within a parameter by their names, such as address[city]; of those that
// are not given, nothing. It returns nil when the parameter is not given, or unset.
func (p *parameters) nested(name string) map[string]string {
	v, given := p.get(name)
	if !given || v.unset {
		return nil
	}
	texts := make(map[string]string, len(v.members))
	for _, m := range v.members {
		if m.text != "" {
			texts[m.name] = m.text
		}
	}
	return texts
}
