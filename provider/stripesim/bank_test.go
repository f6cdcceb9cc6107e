package stripesim

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// The payer follows the address of next_action, presses a button, and comes back with Stripe's
// parameters; whatever became of the payment before, the page leads back.
func TestBankPage(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	send := func(method, address, form string, header ...string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		if form != "" {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(body)
	}
	api := func(path, form string) string {
		t.Helper()
		_, body := send("POST", server.URL+"/v1/payment_intents"+path, form, "Authorization", "Bearer sk_test_1")
		return body
	}
	for _, c := range []struct{ card, button, manual, status, redirect string }{
		{"tok_threeDSecure2Required", "authorise", "automatic", "succeeded", "succeeded"},
		{"tok_threeDSecure2Required", "authorise", "manual", "requires_capture", "succeeded"},
		{"tok_threeDSecure2Required", "fail", "automatic", "requires_payment_method", "failed"},
		{"tok_threeDSecureRequiredChargeDeclined", "authorise", "automatic", "requires_payment_method", "failed"},
		{"tok_threeDSecure2Required", "cancelled", "automatic", "canceled", "failed"},
	} {
		made := api("", "amount=1250&currency=eur&confirm=true&capture_method="+c.manual+
			"&payment_method_data[type]=card&payment_method_data[card][token]="+c.card+
			"&return_url="+url.QueryEscape("http://shop.example/back?order=7#top"))
		page := regexp.MustCompile(`"url":"([^"]+)"`).FindStringSubmatch(made)
		id := regexp.MustCompile(`pi_3[A-Za-z0-9]+`).FindString(made)
		if page == nil || !strings.HasPrefix(page[1], server.URL+"/bank/"+id+"?") {
			t.Fatalf("no page of the simulator in %s", made)
		}
		res, body := send("GET", page[1], "", "Sec-Fetch-Site", "cross-site")
		if res.StatusCode != 200 || !strings.Contains(body, `value="authorise"`) || !strings.Contains(body, "12.50") {
			t.Fatalf("the page: %d %s", res.StatusCode, body)
		}
		bare, secret, _ := strings.Cut(page[1], "?")
		for name, got := range map[string]int{
			"without the secret":     status(send("GET", bare, "")),
			"with another secret":    status(send("GET", bare+"?"+secretParam+"=x", "")),
			"pressed by another one": status(send("POST", bare, secret+"&outcome=authorise", "Sec-Fetch-Site", "cross-site")),
			"pressed from elsewhere": status(send("POST", bare, secret+"&outcome=authorise", "Origin", "http://shop.example")),
			"another button":         status(send("POST", bare, secret+"&outcome=x")),
		} {
			if got < 400 {
				t.Errorf("%s: got %d", name, got)
			}
		}
		if c.button == "cancelled" {
			api("/"+id+"/cancel", "")
			res, _ = send("GET", page[1], "")
		} else {
			res, _ = send("POST", bare, secret+"&outcome="+c.button, "Origin", server.URL, "Sec-Fetch-Site", "same-origin")
		}
		want := fmt.Sprintf("http://shop.example/back?order=7&payment_intent=%s&%s&redirect_status=%s#top", id, secret, c.redirect)
		if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("%v: back to %d %s, want %s", c, res.StatusCode, got, want)
		}
		if in := s.intentOf(id); in.Status != c.status {
			t.Errorf("%v: the intent is %s", c, in.Status)
		}
		if again, _ := send("POST", bare, secret+"&outcome=authorise"); again.Header.Get("Location") != want {
			t.Errorf("%v: pressed again: %s", c, again.Header.Get("Location"))
		}
	}
}

func status(r *http.Response, _ string) int { return r.StatusCode }
