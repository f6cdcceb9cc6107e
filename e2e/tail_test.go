package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"paidonce/api/apitest"
)

// events returns the ids of all events, in their order.
func (w *world) events(p *proc) (ids []string) {
	w.t.Helper()
	for after := ""; ; after = "&starting_after=" + ids[len(ids)-1] {
		var page struct {
			Data    []struct{ ID string }
			HasMore bool `json:"has_more"`
		}
		w.client(p).Get("/v1/events?limit=100" + after).JSON(&page)
		for _, e := range page.Data {
			ids = append(ids, e.ID)
		}
		if !page.HasMore {
			return ids
		}
	}
}

var tailedID = regexp.MustCompile(`(?m)^(?:\{"id":"(evt_\w+)".*\}|\d{4}-.* (evt_\w+))\n`)

// tailed returns the ids of the events that a tail has printed so far, as JSON or in a table.
func tailed(p *proc) (ids []string) {
	for _, m := range tailedID.FindAllStringSubmatch(p.output(), -1) {
		ids = append(ids, m[1]+m[2])
	}
	return ids
}

// A tail over a server that is killed and comes back prints each event exactly once, in their
// order, and says once an outage that there is no answer.
func TestTailMissesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve()
	address := strings.TrimPrefix(p.url, "http://")
	c := w.client(p)
	charge := func(i int) {
		if a, _ := until(t, func() *apitest.Client {
			return c
		}, fmt.Sprint("k-", i), order(100+i)); a.Code != http.StatusCreated {
			t.Errorf("charge %d: %d %s", i, a.Code, a.Body)
		}
	}
	charge(0)
	first := w.events(p)[0]
	tail := func(args ...string) *proc {
		return w.start("tail",
			w.command(w.asClient(p), append([]string{"events", "tail"}, args...)...))
	}
	fromStart, fromNow, last, after := tail("--json", "--from-start"), tail(), tail("-n", "5"),
		tail("--json", "--after", first)
	tails := []*proc{fromStart, fromNow, last, after}
	for _, table := range []*proc{fromNow, last} {
		table.await(`TIME +TYPE +OBJECT`) // it has found its place
	}
	const rounds, each = 3, 12
	for round := range rounds {
		// A tail that does not see the server between two outages takes them for one.
		charge(1 + round*each)
		seen := w.events(p)
		for _, tail := range tails {
			eventually(t, tail.name+" has caught up", func() bool {
				return slices.Contains(tailed(tail), seen[len(seen)-1])
			})
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			together(each-1, func(i int) { charge(2 + round*each + i) })
		}()
		if round < rounds-1 {
			eventually(t, "charges are under way", func() bool {
				return len(w.sim.charges()) > 2+round*each
			})
			p.kill()
			for _, tail := range tails {
				eventually(t, tail.name+" notices", func() bool {
					return strings.Count(tail.output(), "trying again until it answers") == round+1
				})
			}
			p = w.serve("PAIDONCE_LISTEN=" + address)
		}
		<-done
	}
	w.sim.mustHave(t, 1+rounds*each)
	all := w.events(p)
	if len(all) != 1+rounds*each {
		t.Fatalf("%d events, want %d", len(all), 1+rounds*each)
	}
	for _, tail := range tails {
		want := all
		if tail == fromNow || tail == after {
			want = all[1:]
		}
		eventually(t, tail.name+" has all", func() bool { return len(tailed(tail)) >= len(want) })
		tail.signal(os.Interrupt)
		if state := tail.wait(); state.ExitCode() != 0 {
			t.Errorf("%v after Ctrl-C: %v, want exit code 0", tail.cmd.Args, state)
		}
		if got := tailed(tail); !slices.Equal(got, want) {
			t.Errorf("%v: %d events\n%v\nwant %d\n%v", tail.cmd.Args, len(got), got, len(want),
				want)
		}
		if n := strings.Count(tail.output(), "trying again"); n != rounds-1 {
			t.Errorf("%v said %d times that there is no answer, want once an outage", tail.cmd.Args,
				n)
		}
	}
}

func TestTailCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve()
	env, c := w.asClient(p), w.client(p)
	tail := func(args ...string) result {
		return w.run(env, append([]string{"events", "tail", "--once"}, args...)...)
	}
	if r := tail("--from-start"); r.code != 0 || strings.Count(r.stdout, "\n") != 1 ||
		r.stderr != "" {
		t.Errorf("no events: %+v", r)
	}
	if r := tail("-n", "3", "--json"); r.code != 0 || r.stdout != "" || r.stderr != "" {
		t.Errorf("no events: %+v", r)
	}
	held := c.Charge("held",
		`{"amount":2000,"currency":"usd","source":"tok_visa","capture":false}`).ID()
	c.Charge("declined", `{"amount":2100,"currency":"eur","source":"tok_chargeDeclined"}`)
	c.Post("/v1/charges/"+held+"/capture", "captured", "")
	refund := c.Post("/v1/refunds", "back", fmt.Sprintf(`{"charge":%q,"amount":500}`, held)).ID()
	all := w.events(p)
	rows := strings.Split(strings.TrimSpace(tail("--from-start").stdout), "\n")
	if len(rows) != len(all)+1 || len(all) < 5 {
		t.Fatalf("%d events: %q", len(all), rows)
	}
	for i, want := range []string{
		`TIME +TYPE +OBJECT +AMOUNT +STATUS +EVENT`,
		`charge\.succeeded +` + held + ` +2000 usd +authorised`,
		`charge\.failed +ch_\w+ +2100 eur +failed`,
		`charge\.captured +` + held + ` +2000 usd +succeeded`,
	} {
		if i > 0 {
			want = `^20\d\d-\d\d-\d\dT\S+Z +` + want + ` +` + all[i-1] + `$`
		}
		if !regexp.MustCompile(want).MatchString(rows[i]) {
			t.Errorf("row %d: %q, want %s", i, rows[i], want)
		}
	}
	if !strings.Contains(strings.Join(rows[4:], "\n"),
		"refund.created          "+refund+"  500 usd ") {
		t.Errorf("no row of the refund: %q", rows[4:])
	}
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"--from-start"}, all}, {[]string{"--after", all[1]}, all[2:]},
		{[]string{"--after", all[len(all)-1]}, nil}, {[]string{"-n", "2"}, all[len(all)-2:]},
		{[]string{"-n", "100"}, all}, {[]string{"-n", "0"}, nil},
		{[]string{"-n", "3", "--type", "charge.failed"}, all[1:2]},
		{[]string{"--from-start", "--type", "charge.dispute.created"}, nil},
	} {
		r := tail(append(tc.args, "--json")...)
		var got []string
		for line := range strings.Lines(r.stdout) {
			var e struct{ ID string }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Errorf("%v: %v", tc.args, err)
			}
			if a := c.Get("/v1/events/" + e.ID); strings.TrimSpace(string(a.Body)) != strings.TrimSpace(line) {
				t.Errorf("printed %s, want %s", line, a.Body)
			}
			got = append(got, e.ID)
		}
		if r.code != 0 || r.stderr != "" || !slices.Equal(got, tc.want) {
			t.Errorf("%v: %v %+v, want %v", tc.args, got, r, tc.want)
		}
	}
}

// Only what asking again does not change ends a tail, on one line that says what to do.
func TestTailErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve()
	env := w.asClient(p)
	run := func(env []string, args ...string) result {
		return w.run(env, append([]string{"events", "tail"}, args...)...)
	}
	another := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"health"}`)
	}))
	defer another.Close()
	for name, tc := range map[string]struct {
		r    result
		code int
		says string
	}{
		"wrong key": {
			run(append(env, "PAIDONCE_API_KEY=sk_wrong")), 1, "paidonce apikeys create",
		},
		"no key": {
			run(append(env, "PAIDONCE_API_KEY=")), 1, "PAIDONCE_API_KEY is not set",
		},
		"a query": {run(append(env, "PAIDONCE_URL="+p.url+"/?")), 1, "has to be a URL"},
		"no URL":  {run(append(env, "PAIDONCE_URL=localhost:8080")), 1, "has to be a URL"},
		"no Paidonce": {
			run(append(env, "PAIDONCE_URL="+p.url+"/elsewhere")), 1, "check PAIDONCE_URL",
		},
		"no list": {
			run(append(env, "PAIDONCE_URL="+another.URL)), 1, "check PAIDONCE_URL",
		},
		"lost cursor": {run(env, "--after", "evt_gone"), 1, "--from-start"},
		"unknown type": {
			run(env, "--type", "charge.exploded"), 1, "there are no events of the type charge.exploded",
		},
		"no server": {
			run(append(env, "PAIDONCE_URL=http://127.0.0.1:1"), "--once", "--from-start"), 1,
			"PAIDONCE_URL says where it is",
		},
		"nothing to print": {run(env, "--once"), 2, "--after, --from-start or -n"},
		"two places":       {run(env, "--after", "evt_x", "-n", "1"), 2, "only one of"},
		"empty place":      {run(env, "--after", ""), 2, "--after"},
		"too many":         {run(env, "-n", "101"), 2, "-n must be 0 to 100"},
		"no number":        {run(env, "-n", "x"), 2, "-n"},
		"argument":         {run(env, "evt_x"), 2, "--help"},
	} {
		if tc.r.code != tc.code || !strings.Contains(tc.r.stderr, tc.says) ||
			strings.Count(tc.r.stderr, "\n") != 1 || tc.r.stdout != "" {
			t.Errorf("%s: %+v, want exit code %d and %q", name, tc.r, tc.code, tc.says)
		}
	}
	// Also when it has been running for a while: here its key is revoked.
	key := w.newKey("shop")
	late := w.start("tail", w.command(append(env, "PAIDONCE_API_KEY="+key.APIKey), "events",
		"tail"))
	late.await(`TIME`)
	w.must("apikeys", "revoke", key.ID)
	if state := late.wait(); state.ExitCode() != 1 || !strings.Contains(late.output(),
		"api_key_invalid") || strings.Contains(late.output(), key.APIKey) {
		t.Errorf("after its key was revoked: %v %s", state, late.output())
	}
}
