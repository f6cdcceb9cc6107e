package api

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"paidonce/api/apitest"
	"paidonce/outbox"
	"paidonce/problem"
)

func TestRetryAfterIsRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "1", 1: "1", time.Second: "1", time.Second + 1: "2", 90 * time.Second: "90"} {
		if got := seconds(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestAnErrorThatIsNoProblemIsOurs(t *testing.T) {
	if e := fromParams(errors.New("x")); e.Code != problem.InternalError {
		t.Errorf("got %v", e)
	}
	if e := fromParams(fmt.Errorf("x: %w", problem.AmountTooLarge.Of("amount", "m"))); e.Code != problem.AmountTooLarge || e.Param != "amount" || e.Message != "m" {
		t.Errorf("got %v", e)
	}
}

func spec(t *testing.T) *openapi3.T {
	t.Helper()
	s, err := apitest.Spec()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheDescriptionIsValid(t *testing.T) {
	if err := spec(t).Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}

// The generated table against the description itself: what is public, what needs a key, and what
// each query and body takes.
func TestOperationsAreThoseOfTheDescription(t *testing.T) {
	ops := map[string]operation{}
	for _, op := range (*Server)(nil).operations() {
		ops[op.id] = op
	}
	for path, item := range spec(t).Paths.Map() {
		for method, o := range item.Operations() {
			op, known := ops[o.OperationID]
			delete(ops, o.OperationID)
			if !known || method != op.method || regexp.MustCompile(`:(\w+)`).ReplaceAllString(op.path, "{$1}") != path {
				t.Errorf("%s %s: %s is %s %s", method, path, o.OperationID, op.method, op.path)
				continue
			}
			if public := o.Security != nil && len(*o.Security) == 0; public != op.public {
				t.Errorf("%s: public is %t", o.OperationID, op.public)
			}
			if isList := strings.HasPrefix(o.OperationID, "list"); isList != answersPages(o) {
				t.Errorf("%s: its name says whether it waits for the turn of a list: %t", o.OperationID, isList)
			}
			query := openapi3.NewObjectSchema()
			key, param := keyNone, ""
			for _, p := range o.Parameters {
				switch {
				case p.Value.In == "query":
					query.WithPropertyRef(p.Value.Name, p.Value.Schema)
				case p.Value.In == "path":
					param = p.Value.Name
				case p.Value.Name == "Idempotency-Key" && p.Value.Required:
					key = keyRequired
				case p.Value.Name == "Idempotency-Key":
					key = keyOptional
				}
			}
			if key != op.key || param != op.param {
				t.Errorf("%s: the key is %d, the path's parameter %q; the table has %d, %q", o.OperationID, key, param, op.key, op.param)
			}
			checkShape(t, o.OperationID, op.query, query)
			if o.RequestBody != nil && !op.public {
				body := o.RequestBody.Value.Content["application/json"].Schema.Value
				checkShape(t, o.OperationID, op.body, body)
				if a := body.AdditionalProperties.Has; a == nil || *a {
					t.Errorf("%s takes other parameters", o.OperationID)
				}
			}
		}
	}
	if len(ops) != 0 {
		t.Errorf("not described: %v", ops)
	}
}

func answersPages(o *openapi3.Operation) bool {
	ok := o.Responses.Status(200)
	if ok == nil || ok.Value.Content["application/json"] == nil {
		return false
	}
	schema := ok.Value.Content["application/json"].Schema.Value
	if len(schema.OneOf) > 0 {
		schema = schema.OneOf[0].Value
	}
	return schema.Properties["has_more"] != nil
}

func checkShape(t *testing.T, id string, s shape, schema *openapi3.Schema) {
	t.Helper()
	if len(schema.Properties) != len(s) {
		t.Errorf("%s: takes %d parameters, described are %d", id, len(s), len(schema.Properties))
	}
	types := map[kind]string{
		text: "string", integer: "integer", boolean: "boolean", pairs: "object", bounds: "object", texts: "array", record: "object",
	}
	for _, f := range s {
		p := schema.Properties[f.name]
		within := f.kind == bounds || f.kind == record
		if p == nil || !p.Value.Type.Is(types[f.kind]) || within != (len(p.Value.Properties) > 0) {
			t.Errorf("%s: %+v is described as %+v", id, f, p)
			continue
		}
		if f.kind == record {
			within := openapi3.NewObjectSchema()
			for name, member := range p.Value.Properties {
				within.WithPropertyRef(memberName(f.name, name), member)
			}
			checkShape(t, id, f.fields, within)
		}
		for _, bound := range f.members {
			if p.Value.Properties[bound] == nil {
				t.Errorf("%s: %s[%s] is not described", id, f.name, bound)
			}
		}
	}
}

func TestEventTypesAreThoseOfTheDescription(t *testing.T) {
	var described []string
	for _, typ := range spec(t).Components.Schemas["EventType"].Value.Enum {
		described = append(described, fmt.Sprint(typ))
	}
	if !slices.Equal(described, outbox.Types) {
		t.Errorf("types of events: %v, described are %v", outbox.Types, described)
	}
}

func TestLimiterIsBoundedAndFair(t *testing.T) {
	if newLimiter(0) != nil || (*limiter)(nil).take("a", time.Now()) != 0 {
		t.Error("no limit limits")
	}
	l, now := newLimiter(2), time.Unix(1764403200, 0)
	for i, want := range []time.Duration{0, 0, 500 * time.Millisecond, 500 * time.Millisecond} {
		if got := l.take("busy", now); got != want {
			t.Errorf("request %d: wait %v, want %v", i, got, want)
		}
	}
	if got := l.take("busy", now.Add(500*time.Millisecond)); got != 0 {
		t.Errorf("after the wait: %v", got)
	}
	now = now.Add(500 * time.Millisecond)
	for i := range limitersMax - 1 {
		l.take(fmt.Sprint("idle", i), now.Add(-time.Hour))
	}
	l.take("new", now)
	if l.take("busy", now) == 0 || len(l.accounts) != 2 {
		t.Errorf("idle accounts are %d, or the busy one was forgotten for them", len(l.accounts)-2)
	}
	for i := range 3 * limitersMax {
		if l.take(fmt.Sprint("busy", i), now); len(l.accounts) > limitersMax {
			t.Fatalf("%d accounts are remembered", len(l.accounts))
		}
	}
}
