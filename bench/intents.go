package main

import (
	_ "embed"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// --intents measures charges, and payment intents that are created and confirmed in one request.

// intentClients are how many make them: one alone, whose every commit is its own, and several.
var intentClients = []int{1, 32}

const (
	callsGoal  = 3 // of the provider, for an intent
	intentPost = 2 // of these that change something: create and confirm
	// created, succeeded, and its charge's
	intentEvents = 3
)

// intentCells are those of --intents.
func intentCells(round int) (cells []cell) {
	for _, n := range intentClients {
		for _, kind := range rotated([]string{"charge", "intent"}, round) {
			cells = append(cells, cell{System: Product, Kind: kind, Clients: n, Round: round})
		}
	}
	return cells
}

// ofIntents reports whether a cell is one of --intents.
func (c cell) ofIntents() bool { return c.Kind == "charge" || c.Kind == "intent" }

// posts is how often a provider is asked to change something for what the cell makes.
func (c cell) posts() int64 {
	if c.Kind == "intent" {
		return intentPost
	}
	return 1
}

// events is how many the product tells of what the cell makes.
func (c cell) events() int64 {
	if c.Kind == "intent" {
		return intentEvents
	}
	return 1
}

const intentsPath = "/v1/payment_intents"

// stripeIntent is an intent as Stripe answers it, with all fields.
//
//go:embed stripe_intent.json
var stripeIntent string

var intentTemplate = cutTemplate(stripeIntent)

// intent creates one, or confirms the one that the rest of the path names.
func (s *stub) intent(rest, key, body string) (status, answer string) {
	form, err := url.ParseQuery(body)
	if err != nil || key == "" {
		return unfit, badForm
	}
	sum := s.posted(key)
	id, confirms := strings.CutSuffix(strings.TrimPrefix(rest, "/"), "/confirm")
	values := map[string]string{"id": id, "status": "succeeded"}
	if confirms {
		s.mu.Lock()
		form = s.intents[id]
		s.mu.Unlock()
		s.wait(form.Get("description"))
		values["amount_received"] = form.Get("amount")
		values["latest_charge"] = renderCharge(sum, form, strconv.Quote(id))
	} else {
		values["id"], values["status"] = fmt.Sprintf("pi_3Nw%020d", sum), "requires_confirmation"
		values["amount_received"], values["latest_charge"] = "0", "null"
		s.mu.Lock()
		s.intents[values["id"]] = form
		s.mu.Unlock()
	}
	if form == nil {
		return "404 Not Found",
			`{"error":{"type":"invalid_request_error","code":"resource_missing","param":"intent",` +
				`"message":"no such intent"}}`
	}
	values["amount"], values["currency"] = form.Get("amount"), form.Get("currency")
	values["created"] = strconv.FormatInt(time.Now().Unix(), 10)
	values["metadata"] = metadataOf(form)
	return "200 OK", intentTemplate.fill(values)
}

func (r *report) intentGoals() []goal {
	g := goal{
		Name: "the provider's calls for a payment intent, most of the cells",
		Want: fmt.Sprintf("at most %d", callsGoal), State: "not measured",
	}
	for _, x := range r.Medians {
		if x.Kind == "intent" && x.Calls > g.Got {
			g.decide(x.Calls, x.Calls <= callsGoal)
		}
	}
	return []goal{g}
}

func (r *report) printIntents(w io.Writer) {
	shown := false
	for _, x := range r.Medians {
		if !x.ofIntents() {
			continue
		}
		if !shown {
			put(w, "\nPayment intents, created and confirmed in one request, and charges; provider "+
				"answers at once\n")
			r.printCells(w, func(x result) bool { return x.ofIntents() })
			shown = true
		}
		put(w, "%s, %d clients: %.2f calls of the provider, %.2f durable commits, %.0f B of WAL\n",
			x.Kind, x.Clients, x.Calls, x.Commits, x.WAL)
	}
	for _, n := range intentClients {
		if x, ok := r.paired(cell{System: Product, Kind: "intent", Clients: n},
			cell{System: Product, Kind: "charge", Clients: n}, perSecond); ok {
			put(w, "intents/s to charges/s, %d clients: %.2f (%.2f-%.2f)\n", n, x.Median, x.Least,
				x.Most)
		}
	}
}
