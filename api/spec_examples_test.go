package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"paidonce/api/apitest"
)

// given is an answer, and what was asked.
type given struct {
	what string
	apitest.Answer
}

// Every example of a request succeeds, and every example of an answer is what the server really
// answers: the same members with the same values, but for what is new each time (ids, secrets,
// times).
func TestExamplesAreTrue(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	// examples of answers and of their headers; several operations may share one
	played, seen := map[string]bool{}, map[string]bool{}
	ran := 0
	for _, p := range places(t) {
		t.Run(p.op.OperationID, func(t *testing.T) {
			ran++
			s.t = t
			succeeded := s.succeed(p)
			for status, ref := range p.op.Responses.Map() {
				examples := examplesOf(ref.Value)
				if len(examples) == 0 {
					t.Errorf("%s has no example", status)
				}
				held, untrue := false, []string(nil)
				for _, name := range slices.Sorted(maps.Keys(examples)) {
					answers := succeeded
					if !strings.HasPrefix(status, "2") {
						answers = s.provoke(p, examples[name])
					}
					for header, h := range ref.Value.Headers {
						if h.Value.Example != nil {
							id := "the header " + header + " " + h.Ref
							played[id], seen[id] = true, seen[id] || slices.ContainsFunc(answers, func(a given) bool {
								return alike("", fmt.Sprint(h.Value.Example), a.Header.Get(header)) == nil
							})
						}
					}
					err := anyAlike(examples[name], status, answers)
					id := cmp.Or(ref.Ref, p.op.OperationID+" "+status) + ": " + name
					played[id] = true
					if err == nil {
						held, seen[id] = true, true
					} else {
						untrue = append(untrue, fmt.Sprintf("%s: %v", name, err))
					}
				}
				if !held && !unprovoked[p.op.OperationID+" "+status] {
					t.Errorf("%s: no example is what is answered:\n%s", status, strings.Join(untrue, "\n"))
				}
			}
		})
	}
	for id := range played {
		if !seen[id] && ran == len(places(t)) {
			t.Errorf("the example %s is what nobody is answered", id)
		}
	}
}

// unprovoked are answers that there is no way to.
var unprovoked = map[string]bool{
	"getHealth 500": true, // nothing in it can fail but the process
}

// succeed sends every example of a request. All succeed.
func (s *stage) succeed(p *place) (answers []given) {
	s.t.Helper()
	do := func(c scene, what string, body bodyExample, query ...string) {
		s.t.Helper()
		a := c.Do(s.ask(p, c, body, query...))
		answers = append(answers, given{what, a})
		if a.Code/100 != 2 {
			s.t.Errorf("%s: got %d %s", what, a.Code, a.Body)
		}
	}
	for _, param := range slices.Concat(p.params("path"), p.params("query"), p.params("header")) {
		if param.Example == nil {
			s.t.Errorf("the parameter %s has no example", param.Name)
		}
	}
	for _, medium := range p.media() {
		if !slices.ContainsFunc(bodies(p), func(b bodyExample) bool { return b.medium == medium }) {
			s.t.Errorf("there is no example of a body that is %s", medium)
		}
	}
	for _, body := range bodies(p) {
		c := s.scene(p.op.OperationID)
		do(c, body.medium+" "+body.name, body)
		if p.method == http.MethodPut || takesKey(p) {
			do(c, body.medium+" "+body.name+", once more", body)
		}
	}
	for _, param := range p.params("query") {
		do(s.scene(p.op.OperationID), "with "+param.Name, bodyExample{}, param.Name)
	}
	return answers
}

// examplesOf are the examples of an answer's body.
func examplesOf(r *openapi3.Response) map[string]any {
	content := r.Content.Get("application/json")
	if content == nil {
		return nil
	}
	all := map[string]any{}
	if content.Example != nil {
		all["the only one"] = content.Example
	}
	for name, ref := range content.Examples {
		all[name] = ref.Value.Value
	}
	return all
}

// anyAlike says why none of the answers is the example.
func anyAlike(example any, status string, answers []given) error {
	var reasons []string
	for _, a := range answers {
		var body any
		if err := json.Unmarshal(a.Body, &body); err != nil {
			return err
		}
		err := alike("", plain(ordered(example)), plain(ordered(body)))
		if strconv.Itoa(a.Code) != status {
			err = fmt.Errorf("the status is %d, not %s", a.Code, status)
		}
		if err == nil {
			return nil
		}
		reasons = append(reasons, fmt.Sprintf("\t%s: %v: %.1000s", a.what, err, a.Body))
	}
	return fmt.Errorf("of %d answers\n%s", len(answers), strings.Join(reasons, "\n"))
}

// minted are texts that are made anew each time: our own ids and the provider's, secrets. Their
// prefix says what they are.
var minted = regexp.MustCompile(`\b([a-z]+)_[A-Za-z0-9+/]{20,}(_secret_[A-Za-z0-9]{20,})?=*`)

// times are members whose values depend on when it is.
var times = []string{"canceled_at", "created", "expires_at"}

// alike says where an answer differs from an example.
func alike(at string, example, got any) error {
	switch want := example.(type) {
	case map[string]any:
		o, _ := got.(map[string]any)
		names, has := slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(o))
		if !slices.Equal(names, has) {
			return fmt.Errorf("%s has the members %v, not %v", at, has, names)
		}
		for _, name := range names {
			if err := alike(at+"."+name, want[name], o[name]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		list, isList := got.([]any)
		if !isList || len(list) != len(want) {
			return fmt.Errorf("%s is %v, not %v", at, got, want)
		}
		for i := range want {
			if err := alike(fmt.Sprint(at, "[", i, "]"), want[i], list[i]); err != nil {
				return err
			}
		}
		return nil
	case string:
		s, _ := got.(string)
		if minted.ReplaceAllString(want, "${1}_…") == minted.ReplaceAllString(s, "${1}_…") {
			return nil
		}
	case json.Number:
		if n, isNumber := got.(json.Number); isNumber && slices.Contains(times, at[strings.LastIndexByte(at, '.')+1:]) && n != "" {
			return nil
		}
	}
	if example != got {
		return fmt.Errorf("%s is %v, not %v", at, got, example)
	}
	return nil
}

// A check that cannot fail is none.
func TestWhatIsNotAlikeIsFound(t *testing.T) {
	const example = `{"id":"ch_01KB7Y8R5V6W3Q2P1N0M9K8J7H","created":1,"amount":2,"list":[{"a":null}],"flag":true}`
	changed := func(from, to string) string { return strings.Replace(example, from, to, 1) }
	for got, same := range map[string]bool{
		example: true, changed("H\"", "X\""): true, changed(`"created":1`, `"created":7`): true, changed("ch_", "re_"): false, changed(`"amount":2`, `"amount":3`): false,
		changed(`{"a":null}`, ""): false, changed(`"a":null`, `"a":1`): false, changed(`"a":null`, `"b":null`): false, changed(`,"flag":true`, ""): false,
		changed(`true`, `false`): false, changed(`}]`, `}],"more":1`): false, `[]`: false,
	} {
		var a, b any
		if err := json.Unmarshal([]byte(example), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(got), &b); err != nil {
			t.Fatal(err)
		}
		if err := alike("", plain(ordered(a)), plain(ordered(b))); (err == nil) != same {
			t.Errorf("%s: %v", got, err)
		}
	}
}
