package api_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// described is openapi.yaml as it stands there; the embedded copy lacks nothing but the small first
// letters of operation ids.
func described(t *testing.T) *openapi3.T {
	t.Helper()
	text, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// reader reads openapi.yaml as somebody would who wants to learn from it. It says what that reader
// would not.
type reader struct {
	spec *openapi3.T
	say  func(format string, args ...any)
}

func TestTheDescriptionReadsWell(t *testing.T) {
	r := reader{described(t), func(format string, args ...any) { t.Helper(); t.Errorf(format, args...) }}
	r.all()
}

func (r reader) all() {
	tags, used, ids := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, tag := range r.spec.Tags {
		tags[tag.Name] = true
		r.words("the tag "+tag.Name, tag.Name, tag.Description)
	}
	for path, item := range r.spec.Paths.Map() {
		for method, op := range item.Operations() {
			if !operationID.MatchString(op.OperationID) || ids[op.OperationID] != "" {
				r.say("%s %s: the id %q is not of the form verbThing, or is that of %s", method, path, op.OperationID, ids[op.OperationID])
			}
			ids[op.OperationID] = method + " " + path
			if len(op.Tags) != 1 || !tags[op.Tags[0]] {
				r.say("%s: tags %v", op.OperationID, op.Tags)
			} else {
				used[op.Tags[0]] = true
			}
			r.operation(&place{method, path, item, op})
		}
	}
	for name := range tags {
		if !used[name] {
			r.say("no operation has the tag %s", name)
		}
	}
	for name, ref := range r.spec.Components.Schemas {
		r.schema(name, name, ref.Value)
	}
	for name, ref := range r.spec.Components.Headers {
		r.words("the header "+name, name, ref.Value.Description)
	}
	for name, ref := range r.spec.Components.Examples {
		if ref.Value.Summary == "" {
			r.say("the example %s has no summary", name)
		}
	}
}

var (
	operationID = regexp.MustCompile(`^[a-z]+([A-Z][a-z]+)+$`)
	sentence    = regexp.MustCompile(`(?s)^[A-Z"\x60].*[.)]\s*$`)
	word        = regexp.MustCompile(`[A-Za-z0-9]+`)
)

// filling are words that add nothing to a name.
var filling = []string{"a", "an", "the", "of", "this", "its", "s", "is", "id", "value", "object", "field", "parameter", "header"}

// words holds a description against the name of what it describes: it says something else, in a
// sentence.
func (r reader) words(what, name, description string) {
	said := map[string]bool{}
	for _, w := range word.FindAllString(strings.ToLower(description), -1) {
		said[strings.TrimSuffix(w, "s")] = true
	}
	for _, w := range word.FindAllString(strings.ToLower(regexp.MustCompile(`[A-Z]+[a-z]*|[a-z0-9]+`).ReplaceAllString(name, "$0 ")), -1) {
		delete(said, strings.TrimSuffix(w, "s"))
	}
	for _, w := range filling {
		delete(said, strings.TrimSuffix(w, "s"))
	}
	if len(said) == 0 {
		r.say("%s: the description %q says no more than the name", what, description)
	} else if !sentence.MatchString(description) {
		r.say("%s: the description %q is not a sentence", what, description)
	}
}

// expected are the errors that an operation must describe.
func expected(p *place) (statuses []int) {
	statuses = append(statuses, http.StatusMethodNotAllowed, http.StatusInternalServerError)
	if p.secured() {
		statuses = append(statuses, http.StatusBadRequest, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable)
	}
	if strings.Contains(p.path, "{") && p.method != http.MethodPut {
		statuses = append(statuses, http.StatusNotFound)
	}
	if p.method == http.MethodPost || p.method == http.MethodPut {
		statuses = append(statuses, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge)
		if p.op.OperationID != "receiveStripeEvent" {
			statuses = append(statuses, http.StatusUnsupportedMediaType)
		}
	}
	if takesKey(p) {
		statuses = append(statuses, http.StatusUnprocessableEntity)
	}
	return statuses
}

func (r reader) operation(p *place) {
	op := p.op
	if op.Summary == "" || strings.HasSuffix(op.Summary, ".") || op.Summary == op.Description {
		r.say("%s: the summary %q", p, op.Summary)
	}
	r.words(p.String(), op.Summary, op.Description)
	for _, in := range []string{"path", "query", "header"} {
		for _, param := range p.params(in) {
			r.words(fmt.Sprint(p, ", ", in, " ", param.Name), param.Name, param.Description)
			r.enum(fmt.Sprint(p, ", ", in, " ", param.Name), param.Schema.Value, param.Description+param.Schema.Value.Description)
		}
	}
	for _, status := range expected(p) {
		if op.Responses.Status(status) == nil {
			r.say("%s does not describe %d", p, status)
		}
	}
	failure := r.spec.Components.Schemas["Error"].Value
	succeeds := false
	for status, ref := range op.Responses.Map() {
		content := ref.Value.Content.Get("application/json")
		succeeds = succeeds || status[0] == '2'
		if content == nil || status[0] != '2' && content.Schema.Value != failure {
			r.say("%s, %s: not the error object", p, status)
		}
		if ref.Value.Description == nil || !sentence.MatchString(*ref.Value.Description) {
			r.say("%s, %s: no description that is a sentence", p, status)
		}
	}
	if !succeeds {
		r.say("%s never succeeds", p)
	}
}

// schema reads a schema that stands under a name, and what is within it.
func (r reader) schema(what, name string, s *openapi3.Schema) {
	if len(s.Enum) == 1 && s.Description == "" {
		return // a constant says all by itself
	}
	r.words(what, name, s.Description)
	r.enum(what, s, s.Description)
	for member, ref := range s.Properties {
		if ref.Ref == "" {
			r.schema(what+"."+member, member, ref.Value)
		}
	}
	if s.Items != nil && s.Items.Ref == "" && len(s.Items.Value.Properties) > 0 {
		r.schema(what+"[]", name, s.Items.Value)
	}
}

// enum holds that a description explains each of a few values.
func (r reader) enum(what string, s *openapi3.Schema, description string) {
	const few = 6 // more are explained elsewhere
	if s.Type == nil || !s.Type.Is("string") || len(s.Enum) < 2 || len(s.Enum) > few {
		return
	}
	for _, v := range s.Enum {
		if !strings.Contains(description, fmt.Sprint("`", v, "`")) {
			r.say("%s: the description does not explain `%v`", what, v)
		}
	}
}

// A check that cannot fail is none.
func TestWhatReadsBadlyIsFound(t *testing.T) {
	text, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ replace, with, finds string }{
		{"operationId: getCharge", "operationId: listCharges", "is that of"},
		{"operationId: getCharge", "operationId: get_charge", "verbThing"},
		{"tags: [health]", "tags: [nope]", "tags"},
		{"summary: Retrieve a charge", "summary: Retrieve a charge.", "summary"},
		{"description: Your own pairs of text.", "description: Metadata", "no more than the name"},
		{`description: "The payment intent's id, which is the provider's."`, "description: The id of the payment intent.", ""},
		{"description: Only charges in this state.", "description: The status", "no more than the name"},
		{"description: Only charges in this state.", "description: only charges in this state", "not a sentence"},
		{"description: Where the payer can authenticate.", "description: ''", "no more than the name"},
		{"`disabled`: queued", "or queued", "explain `disabled`"},
		{`        "429": { $ref: "#/components/responses/RateLimited" }`, "", "does not describe 429"},
		{`        "404": { $ref: "#/components/responses/NotFound" }`, "", "does not describe 404"},
		{`description: "The payment was declined`, `description: "the payment was declined`, "402: no description that is a sentence"},
		{"summary: All is well", "summary: ''", "no summary"},
	} {
		changed := strings.Replace(string(text), tc.replace, tc.with, 1)
		if changed == string(text) {
			t.Errorf("%q is not there", tc.replace)
			continue
		}
		spec, err := openapi3.NewLoader().LoadFromData([]byte(changed))
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		reader{spec, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}.all()
		if all := strings.Join(said, "\n"); tc.finds == "" && all != "" || !strings.Contains(all, tc.finds) {
			t.Errorf("%q instead of %q: found %q, want %q", tc.with, tc.replace, all, tc.finds)
		}
	}
}
