package api

import (
	"strings"

	"paidonce/problem"
)

// inFull gives the fields within records the names that forms and errors have for them.
func inFull(of string, s shape) shape {
	for i := range s {
		if of != "" {
			s[i].name = memberName(of, s[i].name)
		}
		inFull(s[i].name, s[i].fields)
	}
	return s
}

// shortName is what JSON calls a field, within a record or not.
func shortName(name string) string {
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '[')+1:], "]")
}

// openRecord returns the parameters within a record, which may have been begun.
func (p *parameters) openRecord(i int) (*parameters, *problem.Error) {
	v := &p.values[i]
	switch {
	case v.record != nil:
	case p.given[i]: // shipping= and shipping[phone]=1
		return nil, duplicateParameter(p.shape[i].name)
	default:
		v.record = newParameters(p.shape[i].fields)
	}
	p.given[i], v.kind = true, record
	return v.record, nil
}

// within returns the texts of a record, by their names in it, such as address[city]; of those that
// are not given, nothing. It returns nil when the record is not given, or unset.
func (p *parameters) within(name string) map[string]string {
	v, given := p.get(name)
	if !given || v.record == nil {
		return nil
	}
	found := map[string]string{}
	for i := range v.record.shape {
		f := &v.record.shape[i]
		short := shortName(f.name)
		for inner, text := range v.record.within(f.name) {
			found[memberName(short, inner)] = text
		}
		if text := v.record.values[i].text; text != "" {
			found[short] = text
		}
	}
	return found
}
