package stripesim

import (
	"html/template"
	"net/http"
	"net/url"
	"strings"
)

// The page of the payer's bank, to which next_action sends the payer. It stands for the pages that
// Stripe and the bank have between them, and leads back in Stripe's way.

const bankPath = "/bank/"

func isBank(path string) bool { return strings.HasPrefix(path, bankPath) }

// origin is where the simulator was asked: its pages are there, too.
func origin(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// bankAddress is where the payer of an intent authenticates.
func (in *intent) bankAddress() string {
	return in.Bank + bankPath + in.ID + "?" + secretParam + "=" + in.secret()
}

const secretParam = "payment_intent_client_secret"

var bankPage = template.Must(template.New("bank").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Simulated bank</title>
<style>body{font:1.1em/1.5 system-ui,sans-serif;max-width:26em;margin:4em auto;padding:0 1em}
button{font:inherit;padding:.5em 1em;margin-right:.5em}</style>
<h1>Simulated bank</h1>
{{if .Waits}}<p>Do you authorise a payment of <strong>{{.Price}}</strong>?</p>
<form method="post"><input type="hidden" name="payment_intent_client_secret" value="{{.Secret}}">
<button name="outcome" value="authorise">Authorise</button>
<button name="outcome" value="fail">Fail</button></form>
{{else}}<p>There is nothing to authorise: the payment is {{.Status}}. You may close this page.</p>
{{end}}`))

// serveBank shows the page, and does what its buttons say. Everybody may be sent to it; only itself
// may press the buttons.
func (s *Server) serveBank(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "same-origin") // the address has the secret
	w.Header().Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'")
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	id, secret := strings.TrimPrefix(r.URL.Path, bankPath), r.FormValue(secretParam)
	in := s.intentOf(id)
	if in == nil || secret != in.secret() {
		http.Error(w, "There is no such payment.", http.StatusNotFound)
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		outcome := r.PostForm.Get("outcome")
		if outcome != "authorise" && outcome != "fail" {
			http.Error(w, "outcome is authorise or fail", http.StatusBadRequest)
			return
		}
		// An error says that the payment waits for nothing: it is cancelled, say.
		_ = s.Authenticate(id, outcome == "authorise")
		in = s.intentOf(id)
	default:
		http.Error(w, "GET or POST", http.StatusMethodNotAllowed)
		return
	}
	waits := in.Status == needsAction
	if back := in.wayBack(); back != "" && !waits {
		http.Redirect(w, r, back, http.StatusSeeOther)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = bankPage.Execute(w, map[string]any{ // a payer who is gone changes nothing
		"Waits": waits, "Price": money(in.Amount, in.Currency), "Secret": secret, "Status": in.Status,
	})
}

// intentOf is the intent with the id, as it is now; nil: there is none.
func (s *Server) intentOf(id string) *intent {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.state.intents[id]; e != nil {
		return e.cur
	}
	return nil
}

// wayBack is the return_url with what Stripe adds to it.
func (in *intent) wayBack() string {
	u, err := url.Parse(in.ReturnURL)
	if in.ReturnURL == "" || err != nil {
		return ""
	}
	status := "failed"
	if in.Status == succeeded || in.Status == needsCapture {
		status = "succeeded"
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += "payment_intent=" + in.ID + "&" + secretParam + "=" + in.secret() + "&redirect_status=" + status
	return u.String()
}
