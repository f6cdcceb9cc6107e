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

// pairsOf writes an object as openapi.yaml says that forms are written: name[member]=value for objects, and for lists name[]=value, which may have
// indices instead.
func pairsOf(o object, indexed bool) (list []pair) {
	for _, m := range o {
		switch v := m.value.(type) {
		case object:
			if len(v) == 0 {
				list = append(list, pair{m.name, ""})
			}
			for _, entry := range v {
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

// meaning is what pairs say, by the schema: the document that is held against it. What the schema does not know stays a text, and makes the
// document invalid. An error tells what no schema can: names given twice, indices out of order.
func meaning(list []pair, s *openapi3.Schema) (map[string]any, error) {
	doc := map[string]any{}
	for _, p := range list {
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
		if prop := s.Properties[base+"[]"]; prop != nil && base != p.name {
			entries, _ := doc[base+"[]"].([]any)
			if inner != "" && inner != strconv.Itoa(len(entries)) {
				return nil, fmt.Errorf("%s has an index out of order", p.name)
			}
			doc[base+"[]"] = append(entries, p.value)
			continue
		}
		prop := s.Properties[base]
		if prop == nil || !prop.Value.Type.Is("object") || base == p.name || inner == "" {
			doc[p.name] = p.value // no property has such a name
			continue
		}
		members, begun := doc[base].(map[string]any)
		if _, twice := members[inner]; twice || begun && len(members) == 0 {
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

// typed is a value of a form by its schema.
func typed(value string, s *openapi3.Schema) any {
	switch {
	case s.Type.Is("integer") && plainInteger.MatchString(value):
		return json.Number(value)
	case s.Type.Is("boolean") && (value == "true" || value == "false"):
		return value == "true"
	case s.Type.Is("object") && len(s.Properties) == 0 && value == "":
		return map[string]any{} // the one way to write no pairs
	}
	return value
}
