package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"
)

// pair is name=value of a form or a query, before it is encoded.
type pair struct{ name, value string }

// pairsOf writes an object as openapi.yaml says that forms are written: name[member]=value for
// objects, and for lists name[]=value, which may have indices instead.
func pairsOf(o object, indexed bool) (list []pair) {
	for _, m := range o {
		switch v := m.value.(type) {
		case object:
			if len(v) == 0 {
				list = append(list, pair{m.name, ""})
			}
			for _, entry := range v {
				if within, isObject := entry.value.(object); isObject {
					for _, p := range pairsOf(object{{entry.name, within}}, indexed) {
						group, rest, _ := strings.Cut(p.name, "[")
						if rest != "" {
							rest = "[" + rest
						}
						list = append(list, pair{m.name + "[" + group + "]" + rest, p.value})
					}
					continue
				}
				list = append(list, pair{m.name + "[" + entry.name + "]", scalar(entry.value)})
			}
		case []any:
			base := strings.TrimSuffix(m.name, "[]")
			for i, entry := range v {
				if indexed {
					list = append(list, pair{base + "[" + strconv.Itoa(i) + "]", scalar(entry)})
				} else {
					list = append(list, pair{base + "[]", scalar(entry)})
				}
			}
		default:
			list = append(list, pair{m.name, scalar(v)})
		}
	}
	return list
}

func scalar(value any) string {
	if s, isText := value.(string); isText {
		return s
	}
	return text(value)
}

// encode writes pairs, each in one of the spellings that mean the same.
func encode(t *rapid.T, list []pair) string {
	escape, bare := url.QueryEscape, false
	if len(list) > 0 {
		bare = rapid.Bool().Draw(t, "brackets are not encoded")
		if rapid.Bool().Draw(t, "spaces as %20") {
			escape = func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
		}
	}
	parts := make([]string, len(list))
	for i, p := range list {
		name := escape(p.name)
		if bare {
			name = strings.NewReplacer("%5B", "[", "%5D", "]").Replace(name)
		}
		parts[i] = name + "=" + escape(p.value)
	}
	return strings.Join(parts, "&")
}

var (
	plainInteger = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
	bracketed    = regexp.MustCompile(`^([^\[]+)\[([^\[\]]*)\]$`)
)

// meaning is what pairs say, by the schema: the document that is compared with it. What the schema
// does not know stays a text, and makes the document invalid. An error says what no schema can:
// names given twice, indices out of order.
func meaning(list []pair, s *openapi3.Schema) (map[string]any, error) {
	doc, whole := map[string]any{}, map[string]bool{}
pairs:
	for _, p := range list {
		if prop := s.Properties[p.name]; prop != nil && isRange(prop.Value) && plainInteger.MatchString(p.value) {
			if _, twice := doc[p.name]; twice {
				return nil, fmt.Errorf("%s is given twice", p.name)
			}
			doc[p.name], whole[p.name] = map[string]any{"gte": json.Number(p.value), "lte": json.Number(p.value)}, true
			continue
		}
		if known, err := within(doc, p, s); known || err != nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		if prop := s.Properties[p.name]; prop != nil && !prop.Value.Type.Is("array") {
			if _, twice := doc[p.name]; twice {
				return nil, fmt.Errorf("%s is given twice", p.name)
			}
			doc[p.name] = typed(p.value, prop.Value)
			continue
		}
		base, inner := p.name, ""
		if m := bracketed.FindStringSubmatch(p.name); m != nil {
			base, inner = m[1], m[2]
		}
		for _, name := range []string{base, base + "[]"} {
			if prop := s.Properties[name]; prop != nil && prop.Value.Type.Is("array") && base != p.name {
				entries, _ := doc[name].([]any)
				if inner != "" && inner != strconv.Itoa(len(entries)) {
					return nil, fmt.Errorf("%s has an index out of order", p.name)
				}
				doc[name] = append(entries, p.value)
				continue pairs
			}
		}
		prop := s.Properties[base]
		if prop == nil || !prop.Value.Type.Is("object") || base == p.name || inner == "" {
			doc[p.name] = p.value // no property has such a name
			continue
		}
		members, begun := doc[base].(map[string]any)
		if _, twice := members[inner]; twice || whole[base] || begun && len(members) == 0 {
			return nil, fmt.Errorf("%s is given twice", p.name)
		}
		if !begun {
			members = map[string]any{}
			doc[base] = members
		}
		members[inner] = p.value
		if of := prop.Value.Properties[inner]; of != nil {
			members[inner] = typed(p.value, of.Value)
		}
	}
	return doc, nil
}

// within takes a pair that stands for what is within an object of texts: shipping[name], or
// shipping[address][city]. It reports false where the schema has no such place.
func within(doc map[string]any, p pair, s *openapi3.Schema) (bool, error) {
	base, rest, inside := strings.Cut(p.name, "[")
	prop := s.Properties[base]
	if !inside || prop == nil || !isNested(prop.Value) || !strings.HasSuffix(rest, "]") {
		return false, nil
	}
	at, schema := doc, s
	path := append([]string{base}, strings.Split(strings.TrimSuffix(rest, "]"), "][")...)
	for i, name := range path {
		of := schema.Properties[name]
		if of == nil {
			return false, nil
		}
		if i == len(path)-1 {
			if _, twice := at[name]; twice {
				return false, fmt.Errorf("%s is given twice", p.name)
			}
			at[name] = typed(p.value, of.Value)
			return true, nil
		}
		if !of.Value.Type.Is("object") {
			return false, nil
		}
		next, isObject := at[name].(map[string]any)
		if _, there := at[name]; there && !isObject {
			return false, fmt.Errorf("%s is given twice", p.name)
		}
		if next == nil {
			next = map[string]any{}
			at[name] = next
		}
		at, schema = next, of.Value
	}
	return false, nil
}

// isNested reports whether a schema is of texts with fixed names, some of them in further objects.
func isNested(s *openapi3.Schema) bool {
	return s.Type.Is("object") && len(s.Properties) > 0 && !isRange(s)
}

// isRange reports whether a schema is of bounds, which may be written as one number as well.
func isRange(s *openapi3.Schema) bool { return s.Type.Is("object") && s.Properties["gte"] != nil }

// typed is a value of a form by its schema.
func typed(value string, s *openapi3.Schema) any {
	switch {
	case s.Nullable && value == "":
		return nil
	case s.Type.Is("integer") && plainInteger.MatchString(value):
		return json.Number(value)
	case s.Type.Is("boolean") && (value == "true" || value == "false"):
		return value == "true"
	case s.Type.Is("object") && len(s.Properties) == 0 && value == "":
		return map[string]any{} // the one way to write no pairs
	}
	return value
}

// asTexts makes texts of the numbers and booleans in pairs of texts, such as metadata, and an empty
// one of null, as the descriptions say. An empty text in place of nullable pairs is null.
func asTexts(value any, s *openapi3.Schema) any {
	doc, ok := value.(map[string]any)
	if !ok {
		return value
	}
	for name, prop := range s.Properties {
		if prop.Value.Nullable && doc[name] == "" && prop.Value.Type.Is("object") {
			doc[name] = nil
		}
		pairs, ok := doc[name].(map[string]any)
		if more := prop.Value.AdditionalProperties.Schema; !ok || more == nil || !more.Value.Type.Is("string") {
			continue
		}
		for key, v := range pairs {
			switch v.(type) {
			case json.Number, bool:
				pairs[key] = text(v)
			case nil:
				pairs[key] = ""
			}
		}
	}
	return doc
}
