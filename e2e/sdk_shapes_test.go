package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"paidonce/api/apitest"
)

// stripeMocks are releases of Stripe's own mock, which has their OpenAPI description inside: the
// nearest before the API version that the libraries of docs/compatibility.md pin (2022-11-15), and
// the newest that there is (2026-08-26).
var stripeMocks = []string{"v0.162.0", "v0.203.0"}

// stripeSchemas reads the schemas of a release out of Go's module cache, or skips the test.
func stripeSchemas(t *testing.T, version string) openapi3.Schemas {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json",
		"github.com/stripe/stripe-mock@"+version)
	cmd.Dir = t.TempDir() // not our own module: it is not one of our requirements
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Skipf("stripe-mock %s is not in the module cache and cannot be downloaded: %v", version,
			err)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "embedded", "openapi", "spec3.json"))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	return spec.Components.Schemas
}

// shapes are our own answers, each with the name that Stripe's schema of it has.
func shapes(t *testing.T) map[string][][]byte {
	t.Helper()
	w := newWorld(t)
	c := w.client(w.serve())
	made := c.Charge("k",
		`{"amount":2000,"currency":"usd","source":"tok_visa","description":"d","metadata":{"a":"b"},"receipt_email":"jenny@example.com"}`)
	held := c.Charge("held", `{"amount":2000,"currency":"usd","customer":"cus_42","capture":false}`)
	post := func(path, key, body string) apitest.Answer {
		return c.Do(c.Request(http.MethodPost, path, body, "Idempotency-Key", key, "Content-Type",
			"application/json"))
	}
	captured := post("/v1/charges/"+held.ID()+"/capture", "capture", "")
	refund := post("/v1/refunds",
		"refund", fmt.Sprintf(`{"charge":%q,"amount":500,"reason":"duplicate"}`, made.ID()))
	declined := c.Charge("declined", card("tok_chargeDeclined"))
	wrong := c.As("sk_wrong").Get("/v1/charges")
	reused, missing := c.Charge("k", order(1)), c.Get("/v1/charges/ch_none")
	charges, refunds := c.Get("/v1/charges"), c.Get("/v1/refunds")
	for want, answers := range map[int][]apitest.Answer{200: {captured, charges, refunds},
		201: {made, held, refund}, 401: {wrong}, 402: {declined}, 404: {missing}, 422: {reused}} {
		for _, a := range answers {
			if a.Code != want {
				t.Fatalf("%d %s, want %d", a.Code, a.Body, want)
			}
		}
	}
	var failed struct {
		Error struct{ Charge string }
	}
	if err := json.Unmarshal(declined.Body, &failed); err != nil {
		t.Fatal(err)
	}
	intents, intentErrors := intentShapes(t, c)
	events := querySQL[[][]byte](t, w.dbURL, "SELECT array_agg(payload) FROM outbox")
	return map[string][][]byte{
		"charge": {
			made.Body, held.Body, captured.Body, c.Get("/v1/charges/" + made.ID()).Body,
			c.Get("/v1/charges/" + failed.Error.Charge).Body,
		},
		"refund": {refund.Body}, "event": events, "error": append(
			intentErrors, declined.Body, wrong.Body, reused.Body, missing.Body,
		),
		"list of charge": {charges.Body}, "list of refund": {refunds.Body},
		"payment_intent": intents, "list of payment_intent": {c.Get("/v1/payment_intents").Body},
	}
}

// intentShapes are payment intents of every status that a request can bring about, and errors that
// show one.
func intentShapes(t *testing.T, c *apitest.Client) (intents, errs [][]byte) {
	t.Helper()
	post := func(code int, path, body string) string {
		a := c.Do(c.Request(http.MethodPost, "/v1/payment_intents"+path, body,
			"Idempotency-Key", fmt.Sprint("intent ", len(intents)+len(errs)),
			"Content-Type", "application/x-www-form-urlencoded"))
		if a.Code != code {
			t.Fatalf("%s: %d %s, want %d", body, a.Code, a.Body, code)
		}
		if code < http.StatusBadRequest {
			intents = append(intents, a.Body)
		} else {
			errs = append(errs, a.Body)
		}
		return a.ID()
	}
	const twenty = "amount=2000&currency=usd&payment_method_types[]=card&confirm=true&payment_method="
	post(http.StatusCreated, "", twenty+"pm_card_visa&description=d&metadata[a]=b&customer=cus_42")
	hold := post(http.StatusCreated, "", twenty+"pm_card_visa&capture_method=manual")
	post(http.StatusOK, "/"+hold+"/cancel", "cancellation_reason=duplicate")
	post(http.StatusBadRequest, "/"+hold+"/capture", "")
	post(http.StatusPaymentRequired, "", twenty+"pm_card_chargeDeclined")
	post(http.StatusCreated, "", twenty+"pm_card_threeDSecure2Required&return_url=https://a.example/")
	post(http.StatusCreated, "", twenty+"pm_card_threeDSecure2Required")
	open := post(http.StatusCreated, "", "amount=2000&currency=usd&automatic_payment_methods[enabled]=true")
	post(http.StatusOK, "/"+open, "setup_future_usage=off_session")
	return intents, errs
}

// listSchema: Stripe describes lists where they are used and not by a name.
func listSchema(of *openapi3.SchemaRef) *openapi3.Schema {
	s := openapi3.NewObjectSchema().WithProperty("object",
		openapi3.NewStringSchema().WithEnum("list")).WithProperty("url",
		openapi3.NewStringSchema()).WithProperty("has_more", openapi3.NewBoolSchema())
	s.Properties["data"] = openapi3.NewSchemaRef("", &openapi3.Schema{
		Type: &openapi3.Types{"array"}, Items: of,
	})
	s.Required = []string{"object", "url", "has_more", "data"}
	return s
}

var absent = regexp.MustCompile(`property "([^"]+)" is missing`)

// differences says where a value is not as the schema says: names of properties, with dots between
// the levels.
func differences(err error, found map[string]bool) {
	var many openapi3.MultiError
	var one *openapi3.SchemaError
	switch {
	case errors.As(err, &many):
		for _, e := range many {
			differences(e, found)
		}
	case errors.As(err, &one):
		at := one.JSONPointer()
		if missing := absent.FindStringSubmatch(one.Reason); missing != nil &&
			(len(at) == 0 || at[len(at)-1] != missing[1]) {
			at = append(at, missing[1])
		}
		// places in lists
		at = slices.DeleteFunc(at, func(s string) bool {
			return strings.Trim(s, "0123456789") == ""
		})
		found[strings.Join(at, ".")] = true
	default:
		found[err.Error()] = true
	}
}

func compare(t *testing.T, schema *openapi3.Schema, bodies [][]byte) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, body := range bodies {
		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if err := schema.VisitJSON(value, openapi3.MultiErrors(), openapi3.VisitAsResponse()); err != nil {
			differences(err, found)
		}
	}
	return found
}

func hasDeeper(found map[string]bool, at string) bool {
	for other := range found {
		if strings.HasPrefix(other, at+".") {
			return true
		}
	}
	return false
}

// The differences that docs/compatibility.md lists under "Shapes" are all there are, and they are
// there.
func TestShapesAreStripes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Shapes")
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile(
		"(?m)^\\| ([a-z_ ]+) \\| `([a-z_.]+)` \\|").FindAllStringSubmatch(section, -1) {
		listed[row[1]+" "+row[2]] = true
	}
	ours := shapes(t)
	for _, version := range stripeMocks {
		schemas := stripeSchemas(t, version)
		seen := map[string]bool{}
		for name, bodies := range ours {
			of, isList := strings.CutPrefix(name, "list of ")
			schema := schemas[of].Value
			if isList {
				schema = listSchema(schemas[of])
			}
			found := compare(t, schema, bodies)
			for at := range found {
				if hasDeeper(found, at) {
					continue // only says that something below it differs
				}
				seen[name+" "+strings.TrimPrefix(at, "data.")] = true
			}
		}
		if !maps.Equal(seen, listed) {
			t.Errorf("stripe-mock %s: found %v, docs/compatibility.md lists %v", version,
				slices.Sorted(maps.Keys(seen)), slices.Sorted(maps.Keys(listed)))
		}
	}
}
