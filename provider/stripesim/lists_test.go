package stripesim_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"paidonce/provider/stripesim"
)

// walk pages through a list and gives all ids.
func (s *sim) walk(path, query string, limit int) (ids []string) {
	s.t.Helper()
	after := ""
	for range 1000 {
		r := s.do("GET", path, "", fmt.Sprintf("limit=%d%s%s", limit, query, after))
		if r.status != 200 || r.body["object"] != "list" {
			s.t.Fatalf("%d %s", r.status, r.raw)
		}
		page := r.ids()
		ids = append(ids, page...)
		if r.body["has_more"] != true {
			return ids
		}
		if len(page) != limit {
			s.t.Fatalf("a page of %d with more to come", len(page))
		}
		after = "&starting_after=" + page[len(page)-1]
	}
	s.t.Fatal("no end")
	return nil
}

// Charges of one second have an order too: paging must neither lose nor repeat any.
func TestPagingWithEqualTimes(t *testing.T) {
	c := &clock{time.Unix(1800000000, 0)}
	s := start(t, stripesim.Config{Now: c.now})
	var made []string
	for i := range 25 {
		if i == 15 {
			c.t = c.t.Add(time.Second)
		}
		made = append(made, s.pay("", visa).id())
	}
	slices.Reverse(made)
	for _, limit := range []int{1, 2, 5, 24, 25, 26, 100} {
		if got := s.walk("/v1/charges", "", limit); !slices.Equal(got, made) {
			t.Errorf("limit %d: %v, want %v", limit, got, made)
		}
	}
	for query, want := range map[string][]string{
		"":                                   made[:10],
		"limit=3&ending_before=" + made[10]:  made[7:10],
		"limit=100&ending_before=" + made[2]: made[:2],
		"limit=3&ending_before=" + made[0]:   nil,
		"limit=3&starting_after=" + made[24]: nil,
		"limit=100&created=1800000001":       made[:10],
		"limit=100&created[gt]=1800000000":   made[:10],
		"limit=100&created[gte]=1800000000":  made,
		"limit=100&created[lt]=1800000001":   made[10:],
		"limit=100&created[lte]=1799999999":  nil,
		"limit=4&created[lte]=1800000000":    made[10:14],
		"limit=100&created[gte]=1800000001&created[lte]=1800000001&starting_after=" + made[3]: made[4:10],
	} {
		if r := s.do("GET", "/v1/charges", "", query); !slices.Equal(r.ids(), want) {
			t.Errorf("%s: %v, want %v", query, r.ids(), want)
		}
	}
	for query, param := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "limit=x": "limit", "created[gte]=x": "created[gte]", "starting_after=ch_x": "starting_after",
		"colour=red": "colour", "created[near]=1": "",
	} {
		if r := s.do("GET", "/v1/charges", "", query); query != "created[near]=1" && (r.status != 400 || r.err("param") != param) {
			t.Errorf("%s: %d %s", query, r.status, r.raw)
		}
	}
}

// A clock that was set back puts charges where their time belongs.
func TestListAfterClockWentBack(t *testing.T) {
	c := &clock{time.Unix(1800000000, 0)}
	s := start(t, stripesim.Config{Now: c.now})
	a := s.pay("", visa).id()
	s.SetClock(-time.Hour)
	b := s.pay("", visa).id()
	s.SetClock(-30 * time.Minute)
	m := s.pay("", visa).id()
	if got := s.walk("/v1/charges", "", 1); !slices.Equal(got, []string{a, m, b}) {
		t.Errorf("%v", got)
	}
}

func TestCustomerFilter(t *testing.T) {
	s := start(t, stripesim.Config{})
	cust := s.do("POST", "/v1/customers", "", "source=tok_visa").id()
	var want []string
	for range 5 {
		want = append(want, s.pay("", "amount=2000&currency=usd&customer="+cust).id())
		s.pay("", "amount=2000&currency=usd&customer=cus_42")
		s.pay("", "amount=2000&currency=usd&customer=cus_test_7")
	}
	slices.Reverse(want)
	if got := s.walk("/v1/charges", "&customer="+cust, 2); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if r := s.do("GET", "/v1/charges", "", "customer=cus_nobody"); len(r.ids()) != 0 || r.status != 200 {
		t.Errorf("%d %s", r.status, r.raw)
	}
	for form, code := range map[string]string{
		"amount=2000&currency=usd&customer=cus_nobody":                                               "resource_missing",
		"amount=2000&currency=usd&customer=" + s.do("POST", "/v1/customers", "", "email=a@b.c").id(): "missing",
	} {
		if r := s.do("POST", "/v1/charges", "", form); r.err("code") != code {
			t.Errorf("%s: %s", form, r.raw)
		}
	}
}

func TestSearchLags(t *testing.T) {
	c := &clock{time.Unix(1800000000, 0)}
	s := start(t, stripesim.Config{Now: c.now, SearchLag: 30 * time.Second})
	want := s.pay("", visa+"&metadata[op]=it's \"7\"&metadata[b]=x").id()
	for range 3 {
		s.pay("", visa+"&metadata[b]=x")
	}
	search := func(q string) *reply {
		return s.do("GET", "/v1/charges/search", "", "limit=2&query="+url.QueryEscape(q))
	}
	const q = `metadata['op']:'it\'s "7"' AND metadata['b']:'x'`
	if r := search(q); r.status != 200 || len(r.ids()) != 0 || r.body["object"] != "search_result" {
		t.Errorf("at once: %s", r.raw)
	}
	c.t = c.t.Add(30 * time.Second)
	if r := search(q); !slices.Equal(r.ids(), []string{want}) || r.body["next_page"] != nil {
		t.Errorf("after the lag: %s", r.raw)
	}
	first := search(`metadata["b"]:"x" AND status:'succeeded' AND amount:2000 AND -currency:'eur'`)
	next := s.do("GET", "/v1/charges/search", "", "limit=2&page="+first.body["next_page"].(string)+"&query="+url.QueryEscape(`metadata["b"]:"x"`))
	if len(first.ids()) != 2 || len(next.ids()) != 2 || next.body["has_more"] != false || next.ids()[1] != want {
		t.Errorf("%s\n%s", first.raw, next.raw)
	}
	for _, bad := range []string{"", "status", "status:", "metadata['a:'b'", "status:'a' OR status:'b'", "status:'a"} {
		if r := search(bad); r.status != 400 {
			t.Errorf("%q: %d", bad, r.status)
		}
	}
	s.control("POST", "/_sim/search_lag", `{"seconds":0}`)
	late := s.pay("", visa+"&metadata[op]=now").id()
	if r := search("metadata['op']:'now'"); !slices.Equal(r.ids(), []string{late}) {
		t.Errorf("without lag: %s", r.raw)
	}
}

// A page in the middle of a long list costs what one of a short list costs.
func TestLongListIsFast(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 40,000 charges")
	}
	c := &clock{time.Unix(1800000000, 0)}
	server, err := stripesim.New(stripesim.Config{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	call := func(method, target, body string) string {
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, target, strings.NewReader(body))
		r.Header = http.Header{"Authorization": {"Bearer sk_test_1"}, "Content-Type": {"application/x-www-form-urlencoded"}}
		server.ServeHTTP(w, r)
		return w.Body.String()
	}
	fastest := func() time.Duration { // of many: what else the machine does is in the others
		least := time.Hour
		for range 50 {
			begin := time.Now()
			page := call("GET", "/v1/charges?limit=100&created[lte]=1800000003&created[gte]=1800000002", "")
			least = min(least, time.Since(begin))
			if strings.Count(page, `"object":"charge"`) != 100 {
				t.Fatal("not a page")
			}
		}
		return least
	}
	var short time.Duration
	for i := range 40_000 {
		if i == 400 {
			short = fastest()
		}
		c.t = time.Unix(1800000000+int64(i)/100, 0)
		call("POST", "/v1/charges", visa)
	}
	if long := fastest(); long > 4*short {
		t.Errorf("a page takes %s, of a short list %s", long, short)
	}
}
