package e2e

import (
	"cmp"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"paidonce"
)

// sample is a curl sample of the reference page, and the operation it stands with.
type sample struct{ operation, source string }

// samples are those of openapi.yaml, in its order; an operation without one is a fault.
func samples(t *testing.T) (all []sample) {
	t.Helper()
	var spec struct {
		Paths yaml.Node
	}
	if err := yaml.Unmarshal(paidonce.OpenAPI, &spec); err != nil {
		t.Fatal(err)
	}
	// path and item alternate; so do method and operation
	for i := 1; i < len(spec.Paths.Content); i += 2 {
		methods := spec.Paths.Content[i].Content
		for j := 1; j < len(methods); j += 2 {
			var op struct {
				OperationID string                    `yaml:"operationId"`
				Samples     []struct{ Source string } `yaml:"x-codeSamples"`
			}
			if err := methods[j].Decode(&op); err != nil {
				t.Fatal(err)
			}
			if len(op.Samples) != 1 || !strings.Contains(op.Samples[0].Source, "curl ") {
				t.Errorf("%s has no curl sample", op.OperationID)
				continue
			}
			all = append(all, sample{op.OperationID, op.Samples[0].Source})
		}
	}
	return all
}

// The curl samples of the reference page run as they stand, but for the ids of what they are about.
func TestSamplesOfTheReference(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	w := newWorld(t, "STRIPE_WEBHOOK_SECRET=whsec_reference", "PAIDONCE_WORKERS=inbox,relay")
	p := w.serve()
	run := func(name, script string) string {
		t.Helper()
		const strict = "curl() { command curl -sS --fail-with-body \"$@\"; }\n"
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", strict+script)
		cmd.Env = w.command([]string{"PAIDONCE_URL=" + p.url, "PAIDONCE_API_KEY=" + w.apiKey}).Env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s\n%s", name, err, script, out)
		}
		return string(out)
	}
	// What the samples are about: they name things that only the examples have.
	const key = "3f0c8a0e-5d4f-4f0e-9a43-0b6f6f5b2a11"
	charge := `curl "$PAIDONCE_URL/v1/charges" -u "$PAIDONCE_API_KEY:" ` +
		`-d amount=2000 -d currency=usd -d source=tok_visa `
	authorised := map[string]string{}
	for _, ends := range []string{"captureCharge", "cancelCharge"} {
		authorised[ends] = idIn(t, "ch", run("an authorised charge",
			charge+`-H "Idempotency-Key: `+ends+`" -d capture=false`))
	}
	// Each operation on an intent has one of its own, held by all but the last two.
	intent := `curl "$PAIDONCE_URL/v1/payment_intents" -u "$PAIDONCE_API_KEY:" ` +
		`-d amount=2000 -d currency=usd -d "payment_method_types[]=card" -d payment_method=pm_card_visa `
	intents := map[string]string{}
	for ends, how := range map[string]string{
		"getPaymentIntent": "", "updatePaymentIntent": "", "confirmPaymentIntent": "",
		"cancelPaymentIntent":  "",
		"capturePaymentIntent": `-d capture_method=manual -d confirm=true `,
	} {
		made := run("a payment intent", intent+how+`-H "Idempotency-Key: pi `+ends+`"`)
		intents[ends] = regexp.MustCompile(`"id":"(pi_\w+)"`).FindStringSubmatch(made)[1]
	}
	charged := idIn(t, "ch", run("a charge", charge+`-H "Idempotency-Key: `+key+`"`))
	var event string
	eventually(t, "the charge's event is listed", func() bool {
		listed := run("its event",
			`curl "$PAIDONCE_URL/v1/events?order=desc&limit=1" -u "$PAIDONCE_API_KEY:"`)
		event = regexp.MustCompile(`evt_[0-9A-Z]{26}`).FindString(listed)
		return event != ""
	})
	refund := "re_…"
	all := samples(t)
	slices.SortStableFunc(all, func(a, b sample) int { // the endpoint is needed until the end
		const last = "deleteWebhookEndpoint"
		return cmp.Compare(strings.Count(a.operation, last), strings.Count(b.operation, last))
	})
	for _, s := range all {
		if s.operation == "getDispute" { // nobody disputes anything here
			continue
		}
		about := cmp.Or(authorised[s.operation], charged)
		script := s.source
		for prefix, id := range map[string]string{"ch": about, "evt": event, "re": refund} {
			script = regexp.MustCompile(prefix+`_[0-9A-Z]{26}`).ReplaceAllString(script, id)
		}
		script = strings.ReplaceAll(
			script, "pi_3MtwBwLkdIwHu7ix28a3tqPa", cmp.Or(intents[s.operation], "pi_…"),
		)
		out := run(s.operation, script)
		if s.operation == "createRefund" {
			refund = idIn(t, "re", out)
		}
	}
	if net := w.sim.net(); net != 2000+1200+2000-500+2000+2000+1200 {
		t.Errorf("the samples and what they need move %d", net)
	}
}

// idIn is the id of the object that an answer is.
func idIn(t *testing.T, prefix, answer string) string {
	t.Helper()
	found := regexp.MustCompile(`"id":"(` + prefix + `_[0-9A-Z]{26})"`).FindStringSubmatch(answer)
	if found == nil {
		t.Fatalf("no id in %s", answer)
	}
	return found[1]
}
