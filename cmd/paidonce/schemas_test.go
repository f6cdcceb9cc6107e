package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"paidonce/db"
	"paidonce/inbox"
	"paidonce/outbox"
	"paidonce/provider/stripesim"
)

// updateSchemas rewrites docs/events: go test ./cmd/paidonce -run TestEventSchemas -update-schemas
var updateSchemas = flag.Bool("update-schemas", false, "write docs/events anew")

const schemasDir = "../../docs/events"

type object = map[string]any

// eventSchemas makes the JSON Schemas of all events from what openapi.yaml says of their objects.
func eventSchemas(t *testing.T) map[string][]byte {
	t.Helper()
	var spec struct {
		Components struct{ Schemas map[string]any }
	}
	if err := yaml.Unmarshal(readFile(t, "openapi.yaml"), &spec); err != nil {
		t.Fatal(err)
	}
	schemas := map[string][]byte{}
	for _, typ := range outbox.Types {
		name := "Charge"
		switch {
		case strings.HasPrefix(typ, "refund."):
			name = "Refund"
		case strings.HasPrefix(typ, "payment_intent."):
			name = "PaymentIntent"
		case strings.HasPrefix(typ, "radar."):
			name = "EarlyFraudWarning"
		}
		definitions := object{}
		define(t, spec.Components.Schemas, name, definitions)
		schema := object{
			"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Event " + typ,
			"type": "object",
			"description": "What is delivered, published and listed: the object as GET showed it " +
				"when the event came true. Unknown members may be added.",
			"required": []string{
				"id", "object", "api_version", "created", "data", "livemode", "sequence", "type",
			},
			"properties": object{
				"id": object{
					"type": "string", "pattern": "^evt_[0-9A-Z]{26}$",
					"description": "Dedupe by it: an event is delivered at least once.",
				},
				"object": object{"const": "event"},
				"api_version": object{
					"const":       "2023-10-16",
					"description": "The version of Stripe's API whose shapes these are.",
				},
				"created": object{"type": "integer", "description": "Unix seconds."},
				"data": object{
					"type": "object", "required": []string{"object"}, "properties": object{
						"object": object{"$ref": "#/$defs/" + name},
					},
				},
				"livemode": object{"type": "boolean", "description": "false: test money."},
				"sequence": object{
					"type": "integer", "minimum": 1, "description": "Of the events of one " +
						"object, from 1 without gaps: a higher one is newer, whatever " +
						"arrived first.",
				},
				"type": object{"const": typ},
			},
			"$defs": definitions,
		}
		text, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		schemas[typ] = append(text, '\n')
	}
	return schemas
}

// define adds a schema of openapi.yaml, and all schemas that it refers to.
func define(t *testing.T, schemas map[string]any, name string, into object) {
	if into[name] != nil {
		return
	}
	if schemas[name] == nil {
		t.Fatalf("openapi.yaml has no schema %s", name)
	}
	into[name] = object{} // it may refer to itself
	into[name] = convert(t, schemas, schemas[name], into)
}

// convert turns a schema of OpenAPI 3.0 into JSON Schema.
func convert(t *testing.T, schemas map[string]any, v any, into object) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = convert(t, schemas, e, into)
		}
		return list
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, "#/components/schemas/")
			define(t, schemas, name, into)
			return object{"$ref": "#/$defs/" + name}
		}
		o := object{}
		for key, value := range v {
			switch {
			// consumers must accept new members
			case key == "example" || key == "nullable" || key == "additionalProperties" &&
				value == false:
			case key == "properties":
				properties := object{}
				for name, p := range value.(map[string]any) {
					properties[name] = convert(t, schemas, p, into)
				}
				o[key] = properties
			default:
				o[key] = convert(t, schemas, value, into)
			}
		}
		if v["nullable"] == true {
			o["type"] = []any{o["type"], "null"}
			if values, ok := o["enum"].([]any); ok && !slices.Contains(values, nil) {
				o["enum"] = append(values, nil)
			}
		}
		return o
	}
	return v
}

// TestEventSchemas checks that docs/events follows from openapi.yaml.
func TestEventSchemas(t *testing.T) {
	want := eventSchemas(t)
	if *updateSchemas {
		if err := os.MkdirAll(schemasDir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for typ, text := range want {
		file := filepath.Join(schemasDir, typ+".json")
		if *updateSchemas {
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, text) {
			t.Errorf("docs/events/%s.json is stale: go test ./cmd/paidonce -run TestEventSchemas "+
				"-update-schemas (%v)", typ, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(schemasDir, "*.json"))
	if err != nil || len(files) != len(want) {
		t.Errorf("docs/events has %d schemas, there are %d types of events (%v)", len(files),
			len(want), err)
	}
}

// checkEvents validates every event in the outbox and returns the types that it saw.
func (w *watched) checkEvents() map[string]int {
	w.t.Helper()
	compiled := map[string]*jsonschema.Schema{}
	c := jsonschema.NewCompiler()
	for typ, text := range eventSchemas(w.t) {
		parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			w.t.Fatal(err)
		}
		if err := c.AddResource("mem:"+typ, parsed); err != nil {
			w.t.Fatal(err)
		}
		if compiled[typ], err = c.Compile("mem:" + typ); err != nil {
			w.t.Fatal(err)
		}
	}
	met, sequences := map[string]int{}, map[string][]int{}
	for after := ""; ; {
		page, err := w.app.events.List(context.Background(), w.key.AccountID, outbox.Filter{
			StartingAfter: after, Limit: 100,
		})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range page.Events {
			after = e.ID
			met[e.Type]++
			instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(e.Payload))
			if err != nil || compiled[e.Type] == nil {
				w.t.Errorf("%s is not JSON, or of an unknown type: %v", e.Payload, err)
			} else if err := compiled[e.Type].Validate(instance); err != nil {
				w.t.Errorf("%s: %v", e.Payload, err)
			}
			var in struct{ Sequence int }
			_ = json.Unmarshal(e.Payload, &in)
			sequences[e.ObjectID] = append(sequences[e.ObjectID], in.Sequence)
		}
		if !page.HasMore {
			break
		}
	}
	for id, list := range sequences {
		for i, n := range list {
			if n != i+1 {
				w.t.Errorf("the events of %s are numbered %v", id, list)
				break
			}
		}
	}
	return met
}

// provider makes the product process an event of the provider.
func (w *watched) provider(typ, objectID string) {
	w.t.Helper()
	err := w.app.fromProvider.Apply(w.t.Context(), inbox.Event{
		ID: db.NewID("evt"), Type: typ, ObjectID: objectID,
	},
		func(context.Context, db.DBTX, inbox.Result) (bool, error) { return true, nil })
	if err != nil {
		w.t.Fatal(err)
	}
}

// dispute returns the id of the only dispute at the provider.
func (w *watched) dispute() string {
	w.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/v1/disputes", nil)
	r.Header.Set("Authorization", "Bearer sk_test_x")
	answer := httptest.NewRecorder()
	w.sim.ServeHTTP(answer, r)
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil || len(list.Data) != 1 {
		w.t.Fatalf("%s: %v", answer.Body, err)
	}
	return list.Data[0].ID
}

// TestPendingEventsMatchTheirSchema checks the event of a charge that waits for its payer.
func TestPendingEventsMatchTheirSchema(t *testing.T) {
	w := newWatched(t, func(c *config) { c.StripeFlow = "payment_intents" })
	if code, text := w.do("POST", "/v1/charges", "a",
		`{"amount":2000,"currency":"usd","source":"tok_threeDSecure2Required"}`); code >= 300 {
		t.Fatalf("%d %s", code, text)
	}
	if met := w.checkEvents(); met["charge.pending"] != 1 {
		t.Error(met)
	}
}

// TestEventsMatchTheirSchemas causes events of every type and checks each against its schema and
// against what GET returns.
func TestEventsMatchTheirSchemas(t *testing.T) {
	w := newWatched(t, nil)
	post := func(path, key, body string, want int) (id, providerID string) {
		t.Helper()
		code, text := w.do("POST", path, key, body)
		if code != want {
			t.Fatalf("%s: %d %s", path, code, text)
		}
		var got struct {
			ID       string
			Provider struct{ ID string }
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		return got.ID, got.Provider.ID
	}
	charge, atProvider := post("/v1/charges", "a",
		`{"amount":2000,"currency":"usd","source":"tok_visa","capture":false,"metadata":{"a":"b"}}`,
		201)
	post("/v1/charges/"+charge+"/capture", "b", `{}`, 200)
	_, refund := post("/v1/refunds", "c", fmt.Sprintf(`{"charge":%q,"amount":500}`, charge), 201)
	post("/v1/charges", "d", `{"amount":2000,"currency":"usd","source":"tok_chargeDeclined"}`, 402)
	if err := w.sim.FailRefund(refund, "lost_or_stolen_card"); err != nil {
		t.Fatal(err)
	}
	w.provider("refund.failed", refund)
	if err := w.sim.DisputeCharge(atProvider); err != nil {
		t.Fatal(err)
	}
	dispute := w.dispute()
	w.provider("charge.dispute.created", dispute)
	if err := w.sim.ChangeDispute(dispute, stripesim.DisputeTerms{Submitted: 1}); err != nil {
		t.Fatal(err)
	}
	w.provider("charge.dispute.updated", dispute)
	warning, err := w.sim.WarnOfFraud(atProvider, "")
	if err != nil {
		t.Fatal(err)
	}
	w.provider("radar.early_fraud_warning.created", warning)
	if err := w.sim.CloseDispute(dispute, "won"); err != nil {
		t.Fatal(err)
	}
	w.provider("charge.dispute.closed", dispute)
	held := `{"amount":2000,"currency":"usd","source":"tok_visa","capture":false}`
	canceled, _ := post("/v1/charges", "e", held, 201)
	post("/v1/charges/"+canceled+"/cancel", "f", ``, 200)
	_, lapsed := post("/v1/charges", "g", held, 201)
	if err := w.sim.LapseHold(lapsed); err != nil {
		t.Fatal(err)
	}
	w.provider("charge.expired", lapsed)
	for key, intent := range map[string]string{
		"pays":         `"payment_method":"pm_card_visa","confirm":true,"payment_method_types":["card"]`,
		"holds":        `"payment_method":"pm_card_visa","confirm":true,"payment_method_types":["card"],"capture_method":"manual"`,
		"needs action": `"payment_method":"pm_card_threeDSecure2Required","confirm":true,"payment_method_types":["card"]`,
		"processing":   `"payment_method":"pm_usBankAccount","confirm":true,"payment_method_types":["us_bank_account"]`,
	} {
		post("/v1/payment_intents", key, `{"amount":2000,"currency":"usd",`+intent+`}`, 201)
	}
	intent, _ := post("/v1/payment_intents", "i", `{"amount":2000,"currency":"usd","payment_method_types":["card"]}`, 201)
	post("/v1/payment_intents/"+intent+"/confirm", "j", `{"payment_method":"pm_card_chargeDeclined"}`, 402)
	post("/v1/payment_intents/"+intent+"/cancel", "k", `{"cancellation_reason":"abandoned"}`, 200)
	met := w.checkEvents()
	for _, typ := range outbox.Types {
		if met[typ] == 0 {
			t.Errorf("no event %s came true", typ)
		}
	}
	t.Log(slices.Sorted(maps.Keys(met)))

	_, shown := w.do("GET", "/v1/charges/"+charge, "", "")
	page, err := w.app.events.List(t.Context(), w.key.AccountID, outbox.Filter{
		Types: []string{"charge.dispute.closed"}, Limit: 1,
	})
	if err != nil || len(page.Events) != 1 {
		t.Fatal(page, err)
	}
	var told struct {
		Data struct{ Object map[string]any }
	}
	var shows any
	if json.Unmarshal(page.Events[0].Payload, &told) != nil ||
		json.Unmarshal([]byte(shown), &shows) != nil {
		t.Fatal(shown)
	}
	disputed, is := told.Data.Object["dispute"].(map[string]any)
	delete(told.Data.Object, "dispute")
	if fmt.Sprint(told.Data.Object) != fmt.Sprint(shows) {
		t.Errorf("the event tells %v, GET shows %s", told.Data.Object, shown)
	}
	_, shown = w.do("GET", fmt.Sprintf("/v1/disputes/%s", disputed["id"]), "", "")
	if err := json.Unmarshal([]byte(shown), &shows); err != nil || !is ||
		fmt.Sprint(disputed) != fmt.Sprint(shows) {
		t.Errorf("the event tells %v, GET shows %s", disputed, shown)
	}
}
