package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"paidonce/charges"
	"paidonce/db"
	"paidonce/idemkeys"
)

// simClient is a client as the contract wants it: it keeps its key, and sends the same request again until it knows the answer. Some give up
// early. Some are wrong, and send another request under a key that others use.
type simClient struct {
	name, key string
	variant   int
	tries     int // still to come
	calls     int
	call      *simCallOut
}

// simCallOut is a request of a client that is out.
type simCallOut struct {
	in    *simInstance
	over  bool // guarded by run.mu
	heard bool
	res   idemkeys.Result
	err   error
}

// The requests that clients send: the variants of one key differ in their bodies.
var simVariants = []charges.Params{
	{Amount: 2000, Currency: "usd", Source: "tok_visa", Capture: true},
	{Amount: 700, Currency: "eur", Source: "tok_visa", Description: "authorised only"},
	{Amount: 1234, Currency: "usd", Source: "tok_chargeDeclined", Capture: true},
	{Amount: 99, Currency: "usd", Source: "tok_nobody", Capture: true},
}

func (r *simRun) hire() {
	for k := range 2 + r.dice.IntN(3) {
		key := fmt.Sprintf("key-%d", k+1)
		r.keys = append(r.keys, key)
		variant := []int{0, 0, 0, 0, 1, 1, 2, 3}[r.dice.IntN(8)]
		for range 1 + r.dice.IntN(3) {
			c := &simClient{name: fmt.Sprintf("client %d", len(r.clients)+1), key: key, variant: variant, tries: 2 + r.dice.IntN(12)}
			if r.dice.IntN(6) == 0 {
				c.variant = (variant + 1) % len(simVariants)
			}
			r.clients = append(r.clients, c)
		}
	}
}

func fingerprint(variant int) idemkeys.Fingerprint {
	return idemkeys.NewFingerprint("POST", "/v1/charges", "", []byte(fmt.Sprintf(`{"variant":%d}`, variant)))
}

// variantOf tells which request the i-th row of a claim stands for. Whose goroutine it is says nothing: commits are written in company.
func variantOf(claim []any, i int) int {
	for _, a := range claim {
		hashes, _ := a.([][]byte)
		if i >= len(hashes) {
			continue
		}
		for v := range simVariants {
			if _, hash := fingerprint(v).Current(); string(hash) == string(hashes[i]) {
				return v
			}
		}
	}
	return -1
}

// ask lets one client, which is not waiting, send its request to any instance.
func (r *simRun) ask() {
	c := r.clients[r.dice.IntN(len(r.clients))]
	if c.call != nil || c.tries == 0 {
		return
	}
	c.tries--
	r.send(c, r.live[r.dice.IntN(len(r.live))])
}

func (r *simRun) request(c *simClient) idemkeys.Request {
	q := idemkeys.Request{
		AccountID: r.lane.key.AccountID, APIKeyID: r.lane.key.ID, Key: c.key, RequestID: db.NewID("req"),
		Fingerprint: fingerprint(c.variant),
	}
	if r.dice.IntN(8) == 0 {
		q.Wait = 300 * time.Millisecond
	}
	return q
}

func (r *simRun) send(c *simClient, in *simInstance) {
	c.calls++
	call := &simCallOut{in: in}
	c.call = call
	q := r.request(c)
	r.say("%s sends %s (request %d) to instance %d", c.name, c.key, c.variant, in.n)
	ctx := context.WithValue(context.Background(), simWho{}, c.name)
	go func() {
		defer func() {
			r.mu.Lock()
			call.over = true
			r.mu.Unlock()
		}()
		res, err := in.create.Create(ctx, q, simVariants[c.variant])
		r.mu.Lock()
		defer r.mu.Unlock()
		if !in.dead { // a dead process tells nobody anything
			call.res, call.err, call.heard = res, err, true
		}
	}()
	r.settle()
}

// hear lets the clients learn what has come back.
func (r *simRun) hear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.clients {
		call := c.call
		if call == nil || !call.over && !call.in.dead {
			continue
		}
		c.call = nil
		if !call.heard {
			r.say("%s hears nothing", c.name)
			continue
		}
		r.judge(c, call.res, call.err)
	}
}

// judge holds what a client was told against all that anybody was told.
func (r *simRun) judge(c *simClient, res idemkeys.Result, err error) {
	var (
		busy    *idemkeys.InUse
		unknown *idemkeys.Unknown
		parked  *idemkeys.Parked
	)
	switch {
	case err == nil:
		r.answered(c, res)
	case errors.Is(err, idemkeys.ErrReused):
		r.say("%s: key reused", c.name)
		r.counts.add("answers: key reused")
		if !r.otherVariant(c) {
			r.fail("%s was told that %s stands for another request; nobody sent one", c.name, c.key)
		}
		c.tries = min(c.tries, 1)
	case errors.As(err, &busy):
		r.say("%s: in use", c.name)
		r.counts.add("answers: in use")
	case errors.As(err, &unknown):
		r.say("%s: unknown", c.name)
		r.counts.add("answers: unknown")
	case errors.As(err, &parked):
		r.say("%s: parked", c.name)
		r.counts.add("answers: parked")
	case errors.Is(err, idemkeys.ErrUnavailable):
		r.say("%s: unavailable", c.name)
		r.counts.add("answers: unavailable")
	case errors.Is(err, idemkeys.ErrNotClaimable): // it came second five times, with a sweep in between each time
		r.say("%s: not claimable", c.name)
		r.counts.add("answers: not claimable")
	default:
		r.fail("%s got an error that the contract does not know: %v", c.name, err)
	}
}

func (r *simRun) otherVariant(c *simClient) bool {
	for _, op := range r.opOrder {
		if op.key == c.key && op.variant != c.variant {
			return true
		}
	}
	return false
}

func (r *simRun) answered(c *simClient, res idemkeys.Result) {
	r.say("%s: answer %d, replayed %t", c.name, res.Answer.Code, res.Replayed)
	r.counts.add("answers: %d", res.Answer.Code)
	c.tries = min(c.tries, 2) // it knows now; some ask again all the same
	op := r.ops[res.OperationID]
	switch {
	case op == nil || op.key != c.key:
		r.fail("%s got the answer of an operation that was never claimed under %s", c.name, c.key)
		return
	case op.variant != c.variant:
		r.fail("%s got the answer to another request than its own", c.name)
	case res.Status != idemkeys.Completed:
		r.fail("%s was told that the operation %s; it should have been made anew", c.name, res.Status)
	case strings.Contains(string(res.Answer.Body), "charge_never_made"):
		r.fail("%s got what must run anew as an answer", c.name)
	}
	if op.answer == nil {
		op.answer = &res.Answer
	} else if err := same(*op.answer, res.Answer); err != nil {
		r.fail("%s: %v", op.name, err)
	}
}
