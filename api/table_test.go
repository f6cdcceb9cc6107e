package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v4"

	"paidonce"
	"paidonce/charges"
	"paidonce/outbox"
)

// faults is the table of errors, by code and status.
func faults(t *testing.T) map[string]fault {
	t.Helper()
	table := map[string]fault{}
	all := []fault{
		faultAPIKeyMissing, faultAPIKeyInvalid, faultParameter, faultParameterUnknown, faultParameterDuplicate, faultParameterMissing,
		faultParameterEmpty, faultParameterInteger, faultBodyMalformed, faultBodyIncomplete, faultQueryMalformed, faultKeyMissing, faultKeyInvalid,
		faultSignature, faultWebhooksOff, faultResourceMissing, faultCursorMissing, faultRouteUnknown, faultMethod, faultTimeout, faultBodyTooLarge, faultMediaType, faultEncoding,
		faultInUse, faultReused, faultRateLimited, faultInternal, faultParked, faultOutcomeUnknown, faultProviderUnavailable, faultUnavailable,
		faultShuttingDown,
	}
	for _, f := range all {
		table[fmt.Sprintf("%d %s", f.status, f.code)] = f
	}
	if declared := declaredFaults(t); declared != len(all) || len(table) != len(all) {
		t.Fatalf("errors.go declares %d faults, this test knows %d, of which %d are different", declared, len(all), len(table))
	}
	return table
}

func declaredFaults(t *testing.T) (n int) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, ok := node.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "fault") {
			n++
		}
		return true
	})
	return n
}

// codesOfCharges are those of all files of the domain: charges, and events.
func codesOfCharges(t *testing.T) (codes []string) {
	t.Helper()
	paths, err := filepath.Glob("../charges/*.go")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../outbox/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, more...) {
		if !strings.HasSuffix(path, "_test.go") {
			codes = append(codes, codesOf(t, path)...)
		}
	}
	if len(codes) < 24 {
		t.Errorf("found only %v in charges: has its source changed its form?", codes)
	}
	return codes
}

// codesOf are the codes that other packages give to errors of parameters and to stored answers.
func codesOf(t *testing.T, path string) (codes []string) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(
		`invalid\(\w*(?:"[^"]*")?, "([a-z_]+)"|refuse\([\w.]+, "([a-z_]+)"|Code: "([a-z_]+)"|problem\.Code = "([a-z_]+)"`,
	).FindAllStringSubmatch(string(source), -1) {
		codes = append(codes, m[1]+m[2]+m[3]+m[4])
	}
	return codes
}

func TestEveryCodeIsDescribed(t *testing.T) {
	doc, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.SplitSeq(string(doc), "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 7 && strings.Contains(cells[1], "`") {
			for i := range cells {
				cells[i] = strings.Trim(cells[i], " `")
			}
			rows[cells[2]+" "+cells[1]] = cells
		}
	}
	known := map[string]bool{}
	for name, f := range faults(t) {
		known[name] = true
		row := rows[name]
		if row == nil {
			t.Errorf("docs/errors.md lacks %s", name)
			continue
		}
		if row[3] != f.kind || row[4] != string(f.advice) {
			t.Errorf("docs/errors.md says of %s: %s, %s; it is %s, %s", name, row[3], row[4], f.kind, f.advice)
		}
	}
	others := codesOfCharges(t)
	for name := range rows {
		_, code, _ := strings.Cut(name, " ")
		isDomains := func(other string) bool {
			return other == code || strings.HasSuffix(other, "_") && strings.HasPrefix(code, other) // the rest is the provider's word
		}
		if !known[name] && !slices.ContainsFunc(others, isDomains) {
			t.Errorf("docs/errors.md describes %s, which does not exist", name)
		}
	}
	for _, code := range others {
		row := "| `" + code
		if !strings.HasSuffix(code, "_") {
			row += "` |"
		}
		if !strings.Contains(string(doc), row) {
			t.Errorf("docs/errors.md lacks %s", code)
		}
	}
}

// The reference page lists the codes as docs/errors.md does, without their types.
func TestReferenceListsEveryCode(t *testing.T) {
	doc, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.SplitSeq(string(doc), "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 7 && strings.Contains(cells[1], "`") {
			advice := "| `" + strings.TrimSpace(cells[4]) + "` |"
			want = append(want, "|"+cells[1]+"|"+cells[2]+advice+cells[5]+"|")
		}
	}
	var spec struct{ Info struct{ Description string } }
	if err := yaml.Unmarshal(paidonce.OpenAPI, &spec); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.SplitSeq(spec.Info.Description, "\n") {
		if strings.HasPrefix(line, "| `") {
			got = append(got, line)
		}
	}
	if len(want) < 40 || !slices.Equal(got, want) {
		t.Errorf("the section Errors of openapi.yaml and docs/errors.md differ:\n%s\n\n%s",
			strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAdviceAndRetryAgree(t *testing.T) {
	for name, f := range faults(t) {
		again := f.status == 408 || f.status == 409 || f.status == 429 || f.status >= 500
		if name == "500 operation_parked" {
			again = false
		}
		if again != (f.shouldRetry() == "true") {
			t.Errorf("%s: a client retries %t, Stripe's libraries %s", name, again, f.shouldRetry())
		}
		if (f.status == 409 || f.status == 429 || f.status == 503) != (f.retryAfter > 0) {
			t.Errorf("%s: Retry-After is %v", name, f.retryAfter)
		}
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "1", 1: "1", time.Second: "1", time.Second + 1: "2", 90 * time.Second: "90"} {
		if got := seconds(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestAnErrorThatIsNoParamErrorIsOurs(t *testing.T) {
	if e := fromParams(errors.New("x")); e.status != 500 {
		t.Errorf("got %v", e)
	}
	if e := fromParams(&charges.ParamError{Param: "amount", Code: "amount_too_large", Message: "m"}); e.status != 400 || e.code != "amount_too_large" || e.param != "amount" {
		t.Errorf("got %v", e)
	}
}

func spec(t *testing.T) *openapi3.T {
	t.Helper()
	s, err := GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheDescriptionIsValidAndEmbeddedAsItIs(t *testing.T) {
	onDisk, err := openapi3.NewLoader().LoadFromFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := onDisk.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
	plain := func(s *openapi3.T) (v any) {
		b, err := s.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(b, &v)
		}
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	// The generator embeds operation ids as it names methods: with a capital.
	for _, item := range onDisk.Paths.Map() {
		for _, o := range item.Operations() {
			o.OperationID = strings.ToUpper(o.OperationID[:1]) + o.OperationID[1:]
		}
	}
	if !reflect.DeepEqual(plain(onDisk), plain(spec(t))) {
		t.Error("openapi.gen.go is not generated from openapi.yaml as it is; see oapi-codegen.yaml")
	}
}

func TestOperationsAreThoseOfTheDescription(t *testing.T) {
	ops := operations()
	for path, item := range spec(t).Paths.Map() {
		for method, o := range item.Operations() {
			id := strings.ToLower(o.OperationID[:1]) + o.OperationID[1:] // the embedded ones have a capital
			op, known := ops[id]
			delete(ops, id)
			if !known {
				t.Errorf("%s %s is not guarded", method, path)
				continue
			}
			public := o.Security != nil && len(*o.Security) == 0
			if public != op.public {
				t.Errorf("%s: public is %t", o.OperationID, op.public)
			}
			var query []string
			keyed, param := false, ""
			for _, p := range o.Parameters {
				switch p.Value.In {
				case "query":
					query = append(query, p.Value.Name)
				case "path":
					param = p.Value.Name
				case "header":
					keyed = keyed || p.Value.Name == "Idempotency-Key" && p.Value.Required
				}
			}
			slices.Sort(query)
			if keyed != op.keyed || param != op.param || !slices.Equal(query, names(op.query)) {
				t.Errorf("%s: keyed %t, path %q, query %v; guarded as %+v", o.OperationID, keyed, param, query, op)
			}
		}
	}
	if len(ops) != 0 {
		t.Errorf("not described: %v", ops)
	}
}

func names(s shape) (n []string) {
	for _, f := range s {
		n = append(n, f.name)
	}
	return n
}

func TestParametersAreThoseOfTheDescription(t *testing.T) {
	types := map[kind]string{text: "string", integer: "integer", boolean: "boolean", pairs: "object", bounds: "object", texts: "array"}
	check := func(name string, s shape) {
		schema := spec(t).Components.Schemas[name].Value
		if len(schema.Properties) != len(s) {
			t.Errorf("%s: %v", name, names(s))
		}
		for _, f := range s {
			if p := schema.Properties[f.name]; p == nil || !p.Value.Type.Is(types[f.kind]) {
				t.Errorf("%s: %s", name, f.name)
			}
		}
		if a := schema.AdditionalProperties.Has; a == nil || *a {
			t.Errorf("%s takes other parameters", name)
		}
	}
	check("ChargeParams", chargeShape)
	check("CaptureParams", captureShape)
	check("RefundParams", refundShape)
	check("WebhookEndpointParams", endpointShape)
	var described []string
	for _, typ := range spec(t).Components.Schemas["EventType"].Value.Enum {
		described = append(described, fmt.Sprint(typ))
	}
	if !slices.Equal(described, outbox.Types) {
		t.Errorf("types of events: %v, described are %v", outbox.Types, described)
	}
	for _, bound := range listShape[0].members {
		if spec(t).Components.Schemas["TimeRange"].Value.Properties[bound] == nil {
			t.Errorf("%s is not described", bound)
		}
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
