package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"sync"
)

//go:embed page.html
var pageHTML string

var page = template.Must(template.New("page").Parse(pageHTML))

// order is what the shop knows of a payment. A real shop keeps it in its database: the key is
// stored before anything is sent.
type order struct {
	ID, key string
	request map[string]any // the same for every attempt
	charge  string         // its id, once it is known
}

// shop is the server of the page.
type shop struct {
	paidonce *paidonce
	url      string // its own, as the payer's browser knows it

	mu     sync.Mutex
	orders map[string]*order
}

func newShop(p *paidonce, url string) *shop {
	return &shop{paidonce: p, url: url, orders: map[string]*order{}}
}

func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { show(w, nil) })
	mux.HandleFunc("POST /orders", s.create)
	mux.HandleFunc("GET /orders/{id}", s.show)
	return http.NewCrossOriginProtection().Handler(mux)
}

// create makes an order and charges for it. A payer who has to authenticate is sent to the bank,
// which leads back to the page of the order.
func (s *shop) create(w http.ResponseWriter, r *http.Request) {
	o := &order{ID: rand.Text(), key: rand.Text()}
	back := s.url + "/orders/" + o.ID
	o.request = map[string]any{
		"amount": 2000, "currency": "eur", "source": r.PostFormValue("source"),
		"return_url": back, "metadata": map[string]string{"order": o.ID},
	}
	s.mu.Lock()
	s.orders[o.ID] = o
	s.mu.Unlock()
	c, err := s.state(r.Context(), o)
	if err == nil && c.NextAction != nil && c.NextAction.RedirectToURL != nil {
		back = c.NextAction.RedirectToURL.URL
	}
	http.Redirect(w, r, back, http.StatusSeeOther) // the page of the order shows an error
}

// state charges for the order, or, once there is a charge, reads what became of it. What the
// browser brings back in the address is not to be trusted: only the charge tells.
func (s *shop) state(ctx context.Context, o *order) (charge, error) {
	s.mu.Lock()
	id := o.charge
	s.mu.Unlock()
	if id != "" {
		return s.paidonce.get(ctx, id)
	}
	c, err := s.paidonce.create(ctx, o.key, o.request)
	if err == nil {
		s.mu.Lock()
		o.charge = c.ID
		s.mu.Unlock()
	}
	return c, err
}

// shown is what the page says of an order.
type shown struct {
	State    string // paid, failed, waits or unknown
	Why      string // of a failure
	Continue string // where the payer goes on
}

// show is where the payer comes back to, whenever that is.
func (s *shop) show(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	o := s.orders[r.PathValue("id")]
	s.mu.Unlock()
	if o == nil {
		http.NotFound(w, r)
		return
	}
	c, err := s.state(r.Context(), o)
	var now shown
	switch {
	case errors.Is(err, errUnknown):
		slog.Warn("the payment has no outcome yet", "order", o.ID, "error", err)
		now.State = "unknown" // the page asks again, with the same key
	case err != nil:
		slog.Error("the payment was refused", "order", o.ID, "error", err)
		now = shown{State: "failed", Why: "We could not take the payment."}
	case c.Status == "succeeded":
		now.State = "paid"
	case c.Status == "failed":
		now = shown{State: "failed", Why: c.FailureMessage}
	default:
		now.State = "waits"
		if c.NextAction != nil && c.NextAction.RedirectToURL != nil {
			now.Continue = c.NextAction.RedirectToURL.URL
		}
	}
	show(w, &now)
}

func show(w http.ResponseWriter, now *shown) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer") // the way back has the client secret in it
	_ = page.Execute(w, now)                         // a browser that is gone changes nothing
}
