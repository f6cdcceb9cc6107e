package stripe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"paidonce/provider"
)

// A page that fails is asked for again: a walk through many would otherwise hardly ever end. The first one is not: a provider that is away is told at once.
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
