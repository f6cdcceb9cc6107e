package api_test

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"paidonce/api/apitest"
)

// place is an operation of openapi.yaml, and where it is.
type place struct {
	method, path string
	item         *openapi3.PathItem
	op           *openapi3.Operation
}

func (p *place) String() string { return p.op.OperationID }

// places are all operations, in the order of their paths. They are read once, and not changed.
func places(t testing.TB) []*place {
	t.Helper()
	all, err := readPlaces()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var readPlaces = sync.OnceValues(func() (all []*place, _ error) {
	spec, err := apitest.Spec()
	if err != nil {
		return nil, err
	}
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			all = append(all, &place{method, path, item, op})
		}
	}
	slices.SortFunc(all, func(a, b *place) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.method, b.method)) })
	return all, nil
})

// params are the operation's parameters that stand in the path, the query or the headers.
func (p *place) params(in string) (list []*openapi3.Parameter) {
	for _, ref := range slices.Concat(p.item.Parameters, p.op.Parameters) {
		if ref.Value.In == in {
			list = append(list, ref.Value)
		}
	}
	return list
}

// secured reports whether an API key is needed.
func (p *place) secured() bool { return p.op.Security == nil || len(*p.op.Security) > 0 }

// keyed reports whether an idempotency key is needed: the operation moves money.
func (p *place) keyed() bool {
	return slices.ContainsFunc(p.params("header"), func(h *openapi3.Parameter) bool { return h.Name == "Idempotency-Key" && h.Required })
}

// media are the media types of the body, in a fixed order; none: the operation describes no body.
func (p *place) media() (types []string) {
	if p.op.RequestBody == nil {
		return nil
	}
	for name := range p.op.RequestBody.Value.Content {
		types = append(types, name)
	}
	slices.Sort(types)
	return types
}

// bodySchema is the schema of a body of that media type.
func (p *place) bodySchema(medium string) *openapi3.Schema {
	if p.op.RequestBody == nil || p.op.RequestBody.Value.Content[medium] == nil {
		return nothing
	}
	return p.op.RequestBody.Value.Content[medium].Schema.Value
}

// nothing is the schema of what takes no parameters.
var nothing = &openapi3.Schema{Type: &openapi3.Types{"object"}, AdditionalProperties: openapi3.AdditionalProperties{Has: openapi3.Ptr(false)}}

// querySchema has the query's parameters as properties.
func (p *place) querySchema() *openapi3.Schema {
	s := *nothing
	s.Properties = openapi3.Schemas{}
	for _, q := range p.params("query") {
		schema := *q.Schema.Value
		if q.Example != nil {
			schema.Example = q.Example
		}
		s.Properties[q.Name] = &openapi3.SchemaRef{Value: &schema}
		if q.Required {
			s.Required = append(s.Required, q.Name)
		}
	}
	return &s
}

// resource is the word before the path's parameter, or the last one: what the operation is about.
func (p *place) resource() string {
	before, _, _ := strings.Cut(p.path, "/{")
	return before[strings.LastIndexByte(before, '/')+1:]
}

// member is one of an object. Objects here keep their order, and may have a name twice.
type member struct {
	name  string
	value any
}

// object is a JSON object as it is written. Within one there are strings, bools, nil, json.Number,
// []any and further objects.
type object []member

// set replaces or adds a member.
func (o object) set(name string, value any) object {
	for i := range o {
		if o[i].name == name {
			o = slices.Clone(o)
			o[i].value = value
			return o
		}
	}
	return append(slices.Clone(o), member{name, value})
}

// get returns the value of a member; nil: there is none.
func (o object) get(name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (o object) without(name string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return m.name == name })
}

// ordered is the object of a decoded document, in the order of the names.
func ordered(value any) any {
	switch v := value.(type) {
	case map[string]any:
		var o object
		for name, entry := range v {
			o = append(o, member{name, ordered(entry)})
		}
		slices.SortFunc(o, func(a, b member) int { return strings.Compare(a.name, b.name) })
		return o
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = ordered(v[i])
		}
		return list
	case float64, int, int64, uint64:
		b, _ := json.Marshal(v)
		return json.Number(b)
	default:
		return v
	}
}

// plain is what schemas are compared with.
func plain(value any) any {
	switch v := value.(type) {
	case object:
		o := map[string]any{}
		for _, m := range v {
			o[m.name] = plain(m.value)
		}
		return o
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	default:
		return v
	}
}

// text writes a document. Characters stand for themselves where JSON lets them; what is not UTF-8
// is written as it is.
func text(value any) string {
	switch v := value.(type) {
	case object:
		parts := make([]string, len(v))
		for i, m := range v {
			parts[i] = text(m.name) + ":" + text(m.value)
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = text(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case string:
		return `"` + escaped.ReplaceAllStringFunc(v, func(c string) string {
			b, _ := json.Marshal(c)
			return string(b[1 : len(b)-1])
		}) + `"`
	case json.Number:
		return string(v)
	default:
		b, _ := json.Marshal(v)
		return string(b)
	}
}

var escaped = regexp.MustCompile(`[\x00-\x1f\\]|"`)
