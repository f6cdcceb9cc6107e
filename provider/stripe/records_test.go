package stripe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"paidonce/provider"
)

// A page that fails is asked for again: a walk through many would otherwise hardly ever end. The
// first one is not: a provider that is away is told at once.
func TestBooksGoOnAfterAPageThatFailed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusTooManyRequests} {
		asked := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked%2 == 0 {
				w.WriteHeader(status)
				_, _ = w.Write([]byte(stripeError("api_error", "")))
				return
			}
			n := asked/2 + 1
			_, _ = fmt.Fprintf(w, `{"object":"list","has_more":%t,"data":[%s]}`, n < 3, goodCharge(`"id":"ch_1"`, fmt.Sprintf(`"id":"ch_%d"`, n)))
		}))
		t.Cleanup(s.Close)
		p := connect(t, s.URL)
		var got []string
		err := p.ListCharges(context.Background(), time.Unix(1, 0), time.Time{}, func(c provider.Charge) error { got = append(got, c.ID); return nil })
		if err != nil || fmt.Sprint(got) != "[ch_1 ch_2 ch_3]" {
			t.Errorf("status %d: %v, %v", status, got, err)
		}
		if err = p.ListCharges(context.Background(), time.Unix(1, 0), time.Time{}, func(provider.Charge) error { return nil }); err == nil {
			t.Errorf("status %d: a first page that fails is no error", status)
		}
		if asked != 6 {
			t.Errorf("status %d: asked %d times, want 6", status, asked)
		}
	}
}

// What was sent with a charge comes back from its record as it was sent.
func TestRecordsHaveShipping(t *testing.T) {
	t.Parallel()
	const shipping = `{"address":{"city":"London","country":null,"line1":"12","line2":null,"postal_code":null,"state":null},"carrier":null,"name":"Jenny","phone":"1","tracking_number":null}`
	want := provider.Shipping{Name: "Jenny", Phone: "1", Address: provider.Address{City: "London", Line1: "12"}}
	for said, is := range map[string]*provider.Shipping{shipping: &want, "null": nil, `"x"`: nil, `{"name":"a","address":null}`: {Name: "a"}} {
		charge := goodCharge(`"id":"ch_1"`, `"id":"ch_1","statement_descriptor":"BOOKS","shipping":`+said)
		p := answering(t, 200, nil, `{"object":"list","has_more":false,"data":[`+charge+`]}`)
		var terms *provider.Terms
		err := p.ListCharges(context.Background(), time.Unix(1, 0), time.Time{}, func(c provider.Charge) error { terms = c.Terms; return nil })
		if err != nil || terms == nil || terms.StatementDescriptor != "BOOKS" || !reflect.DeepEqual(terms.Shipping, is) {
			t.Errorf("%s: %+v %v", said, terms, err)
		}
	}
}
