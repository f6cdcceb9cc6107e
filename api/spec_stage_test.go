package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/api/apitest"
	"paidonce/charges"
	"paidonce/internal/world"
	"paidonce/provider/stripesim"
)

// stage is where the examples of openapi.yaml are played: each in an account of its own, so that
// none meets what another left behind.
type stage struct {
	*shop
	t        *testing.T
	accounts int
	// Servers of the same shop that are not well.
	limited, hurried, unsigned, faulty string // their addresses
	// what a server without a database answers, by operation
	dead map[string]given
}

// scene is an account in which an operation's example makes sense, and what its ids are there.
type scene struct {
	*apitest.Client
	ids map[string]string
}

// bodyExample is one of an operation's examples of a body; without a medium there is no body.
type bodyExample struct {
	name, medium string
	value        any
}

// The ids that the examples have.
const (
	exampleCharge  = "ch_01KB7Y8R5V6W3Q2P1N0M9K8J7H"
	exampleIntent  = "pi_3MtwBwLkdIwHu7ix28a3tqPa"
	exampleRefund  = "re_01KB7Y9B2J4N6P8R0T2V4X6Z8A"
	exampleDispute = "dp_01KB7Y9C4K6P8R0T2V4X6Z8A1B"
	exampleEvent   = "evt_01KB7Y8R5V6W3Q2P1N0M9K8J7H"
	exampleKey     = "3f0c8a0e-5d4f-4f0e-9a43-0b6f6f5b2a11"
)

// bodies are the examples of an operation's body, and none where none is needed.
func bodies(p *place) (list []bodyExample) {
	if p.op.RequestBody == nil || !p.op.RequestBody.Value.Required {
		list = append(list, bodyExample{name: "no body"})
	}
	for _, medium := range p.media() {
		content := p.op.RequestBody.Value.Content[medium]
		if content.Example != nil {
			list = append(list, bodyExample{"the only one", medium, content.Example})
		}
		for _, name := range slices.Sorted(maps.Keys(content.Examples)) {
			list = append(list, bodyExample{name, medium, content.Examples[name].Value.Value})
		}
	}
	return list
}

// ask is a request as the examples have it: the path's and the headers' parameters, that body, and
// of the query's parameters the named ones.
func (s *stage) ask(p *place, c scene, body bodyExample, query ...string) *http.Request {
	s.t.Helper()
	path := p.path
	for _, param := range p.params("path") {
		path = strings.ReplaceAll(path, "{"+param.Name+"}", url.PathEscape(fmt.Sprint(param.Example)))
	}
	var parts []string
	for _, param := range p.params("query") {
		if slices.Contains(query, param.Name) {
			for _, pair := range pairsOf(object{{param.Name, ordered(withExample(param).Example)}}, false) {
				parts = append(parts, url.QueryEscape(pair.name)+"="+url.QueryEscape(pair.value))
			}
		}
	}
	target := path
	if len(parts) > 0 {
		target += "?" + strings.Join(parts, "&")
	}
	content := written(body)
	for example, real := range c.ids {
		target, content = strings.ReplaceAll(target, example, real), strings.ReplaceAll(content, example, real)
	}
	req := c.Request(p.method, target, content)
	if body.medium != "" {
		req.Header.Set("Content-Type", body.medium)
	}
	if !p.secured() {
		req.Header["Authorization"] = nil
	}
	for _, param := range p.params("header") {
		val := fmt.Sprint(param.Example)
		if param.Name == "Stripe-Signature" {
			val = world.Signed([]byte(content), whsec, time.Now())
		}
		req.Header.Set(param.Name, val)
	}
	return req
}

// written is an example as it is sent.
func written(body bodyExample) string {
	switch body.medium {
	case "":
		return ""
	case mediaForm:
		var parts []string
		for _, pair := range pairsOf(ordered(body.value).(object), false) {
			parts = append(parts, url.QueryEscape(pair.name)+"="+url.QueryEscape(pair.value))
		}
		return strings.Join(parts, "&")
	}
	return text(ordered(body.value))
}

// play does an example of another operation, for the one that follows to make sense.
func (s *stage) play(c scene, operation, example string) apitest.Answer {
	s.t.Helper()
	p := s.place(operation)
	all := bodies(p)
	at := slices.IndexFunc(all, func(b bodyExample) bool { return b.name == example })
	if at < 0 {
		s.t.Fatalf("%s has no example %q", operation, example)
	}
	req := s.ask(p, c, all[at])
	if p.keyed() {
		// the example's own is for what follows
		req.Header.Set("Idempotency-Key", "before "+operation)
	}
	a := c.Do(req)
	if a.Code/100 != 2 {
		s.t.Fatalf("%s, example %q: got %d %s", operation, example, a.Code, a.Body)
	}
	return a
}

func (s *stage) place(operation string) *place {
	all := places(s.t)
	at := slices.IndexFunc(all, func(p *place) bool { return p.op.OperationID == operation })
	if at < 0 {
		s.t.Fatalf("there is no operation %s", operation)
	}
	return all[at]
}

// account is an account without anything.
func (s *stage) account() scene {
	s.t.Helper()
	s.accounts++
	return scene{s.As(s.NewKey(fmt.Sprint("example ", s.accounts)).Secret), map[string]string{}}
}

// scene is an account in which an operation's examples succeed.
func (s *stage) scene(operation string) scene {
	s.t.Helper()
	c := s.account()
	charge := func(example string) { c.ids[exampleCharge] = s.play(c, "createCharge", example).ID() }
	intent := func(example string) { c.ids[exampleIntent] = s.play(c, "createPaymentIntent", example).ID() }
	endpoint := func() { s.play(c, "putWebhookEndpoint", "some") }
	switch operation {
	case "createCharge", "createPaymentIntent", "createWebhookEndpoint", "putWebhookEndpoint", "receiveStripeEvent", "getHealth", "getReadiness":
	case "getCharge", "listCharges", "createRefund", "updateCharge":
		charge("token")
	case "getPaymentIntent", "listPaymentIntents":
		intent("confirmed")
	case "updatePaymentIntent", "cancelPaymentIntent":
		intent("open")
	case "confirmPaymentIntent":
		intent("prepared")
	case "capturePaymentIntent":
		intent("hold")
	case "captureCharge", "cancelCharge":
		charge("authorize")
	case "getRefund", "listRefunds":
		charge("token")
		c.ids[exampleRefund] = s.play(c, "createRefund", "part").ID()
	case "getDispute", "listDisputes":
		charge("token")
		c.ids[exampleDispute] = s.dispute(c, c.Get("/v1/charges/"+c.ids[exampleCharge]))
	case "getEvent", "listEvents", "resendEvent":
		charge("token")
		var events struct{ Data []struct{ ID string } }
		if c.Get("/v1/events").JSON(&events); len(events.Data) != 1 {
			s.t.Fatalf("a charge has %d events", len(events.Data))
		}
		c.ids[exampleEvent] = events.Data[0].ID
		if operation == "resendEvent" {
			endpoint()
			read(s.t, put(c.Client, "/v1/webhook_endpoints/another", `{"url":"https://another.example.com/"}`), http.StatusCreated)
		}
	case "getWebhookEndpoint", "listWebhookEndpoints", "updateWebhookEndpoint", "deleteWebhookEndpoint", "rotateWebhookEndpointSecret":
		endpoint()
	case "getIdempotencyKey":
		c.ids[exampleCharge] = c.Do(s.ask(s.place("createCharge"), c, bodies(s.place("createCharge"))[1])).ID()
	default:
		s.t.Fatalf("%s is new: say what has to be there for its examples to succeed", operation)
	}
	return c
}

// dispute lets the payer dispute a charge, and returns the id of the dispute.
func (s *stage) dispute(of scene, charge apitest.Answer) string {
	s.t.Helper()
	var c charges.Charge
	charge.JSON(&c)
	id, err := s.World.Sim.OpenDispute(*c.Provider.ID, stripesim.DisputeTerms{DueBy: 1765008120})
	if err != nil {
		s.t.Fatal(err)
	}
	s.World.Deliver(s.Inbox, "evt_"+id, "charge.dispute.created", id)
	s.World.Process(s.Inbox)
	var page struct{ Data []struct{ ID string } }
	if of.Get("/v1/disputes").JSON(&page); len(page.Data) != 1 {
		s.t.Fatalf("there are %d disputes", len(page.Data))
	}
	return page.Data[0].ID
}
