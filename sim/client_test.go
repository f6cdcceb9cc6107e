package sim_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"paidonce/charges"
	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/problem"
)

// simulatedClient is a client as the contract wants it: it keeps its key, and sends the same
// request again until it knows the answer. Some give up early. Some are wrong, and send another
// request under a key that others use.
type simulatedClient struct {
	name, key string
	variant   int
	tries     int // still to come
	calls     int
	call      *pendingCall
}

// pendingCall is a request of a client that is out.
type pendingCall struct {
	in    *process
	over  bool // guarded by run.mu
	heard bool
	res   idemkeys.Result
	err   error
}

// The requests that clients send: the variants of one key differ in their bodies.
var variants = []charges.Params{
	{Amount: 2000, Currency: "usd", Source: "tok_visa", Capture: true},
	{Amount: 700, Currency: "eur", Source: "tok_visa", Description: "authorised only"},
	{Amount: 1234, Currency: "usd", Source: "tok_chargeDeclined", Capture: true},
	{Amount: 99, Currency: "usd", Source: "tok_nobody", Capture: true},
}

func (r *run) hireClients() {
	if r.holds {
		r.hire("key-1", theHold, 0, len(variants))
		r.hireEnders()
		return
	}
	for k := range 2 + r.dice.IntN(3) {
		variant := []int{0, 0, 0, 0, 1, 1, 2, 3}[r.dice.IntN(8)]
		r.hire(fmt.Sprintf("key-%d", k+1), variant, 0, len(variants))
	}
}

// hire lets clients send a request under a key. A few of them send another one of those numbered
// from first on, many in all.
func (r *run) hire(key string, variant, first, many int) {
	r.keys = append(r.keys, key)
	for range 1 + r.dice.IntN(3) {
		c := &simulatedClient{
			name: fmt.Sprintf("client %d", len(r.clients)+1), key: key, variant: variant,
			tries: 2 + r.dice.IntN(12),
		}
		if r.dice.IntN(6) == 0 {
			c.variant = first + (variant-first+1)%many
		}
		r.clients = append(r.clients, c)
	}
}

func fingerprint(variant int) idemkeys.Fingerprint {
	return idemkeys.NewFingerprint(
		"POST", "/v1/charges", "", []byte(fmt.Sprintf(`{"variant":%d}`, variant)),
	)
}

// variantOf returns which request the i-th row of a claim stands for. The goroutine does not show
// that: claims are written in batches.
func variantOf(claim []any, i int) int {
	for _, a := range claim {
		hashes, _ := a.([][]byte)
		if one, ok := a.([]byte); ok { // the form for one row
			hashes = [][]byte{one}
		}
		if i >= len(hashes) {
			continue
		}
		for v := range len(variants) + len(endings) {
			if _, hash := fingerprint(v).Current(); string(hash) == string(hashes[i]) {
				return v
			}
		}
	}
	return -1
}

// ask lets one client, which is not waiting, send its request to any instance.
func (r *run) ask() {
	c := r.clients[r.dice.IntN(len(r.clients))]
	if c.call != nil || c.tries == 0 || c.variant >= len(variants) && r.hold == "" {
		return
	}
	c.tries--
	r.send(c, r.live[r.dice.IntN(len(r.live))])
}

func (r *run) request(c *simulatedClient) idemkeys.Request {
	q := idemkeys.Request{
		AccountID: r.lane.key.AccountID, APIKeyID: r.lane.key.ID, Key: c.key,
		RequestID: db.NewID("req"), Fingerprint: fingerprint(c.variant),
	}
	if r.dice.IntN(8) == 0 {
		q.Wait = 300 * time.Millisecond
	}
	return q
}

func (r *run) send(c *simulatedClient, in *process) {
	c.calls++
	call := &pendingCall{in: in}
	c.call = call
	q := r.request(c)
	r.logf("%s sends %s (request %d) to instance %d", c.name, c.key, c.variant, in.number)
	ctx := context.WithValue(context.Background(), actorKey{}, c.name)
	hold := r.hold
	go func() {
		defer func() {
			r.mu.Lock()
			call.over = true
			r.mu.Unlock()
		}()
		res, err := r.carryOut(ctx, in.service, q, c.variant, hold)
		r.mu.Lock()
		defer r.mu.Unlock()
		if !in.dead { // a dead process tells nobody anything
			call.res, call.err, call.heard = res, err, true
		}
	}()
	r.settle()
}

// deliverAnswers lets the clients learn what has come back.
func (r *run) deliverAnswers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.clients {
		call := c.call
		if call == nil || !call.over && !call.in.dead {
			continue
		}
		c.call = nil
		if !call.heard {
			r.logf("%s hears nothing", c.name)
			continue
		}
		r.judge(c, call.res, call.err)
	}
}

// judge checks what a client was told against all earlier answers.
func (r *run) judge(c *simulatedClient, res idemkeys.Result, err error) {
	var (
		busy    *idemkeys.InUse
		unknown *idemkeys.Unknown
		parked  *idemkeys.Parked
		refused *idemkeys.Refused
	)
	switch {
	case err == nil:
		r.answered(c, res)
	case errors.Is(err, idemkeys.ErrReused):
		r.logf("%s: key reused", c.name)
		r.counts.add("answers: key reused")
		if !r.otherVariant(c) {
			r.fail("%s was told that %s stands for another request; nobody sent one", c.name, c.key)
		}
		c.tries = min(c.tries, 1)
	case errors.As(err, &busy):
		r.logf("%s: in use", c.name)
		r.counts.add("answers: in use")
	case errors.As(err, &unknown):
		r.logf("%s: unknown", c.name)
		r.counts.add("answers: unknown")
	case errors.As(err, &parked):
		r.logf("%s: parked", c.name)
		r.counts.add("answers: parked")
	case errors.As(err, &refused) && (r.reference != "" || c.variant >= len(variants)):
		r.refused(c, err)
	// it came second five times, with a sweep in between each time
	case errors.Is(err, idemkeys.ErrContended):
		r.logf("%s: came and went", c.name)
		r.counts.add("answers: came and went")
	case errors.Is(err, idemkeys.ErrUnavailable):
		r.logf("%s: unavailable", c.name)
		r.counts.add("answers: unavailable")
	default:
		r.fail("%s got an error that the contract does not know: %v", c.name, err)
	}
}

// refused checks that somebody else has the order, or the hold. Who asks in vain now may ask again.
func (r *run) refused(c *simulatedClient, err error) {
	var why *problem.Error
	allowed := []problem.Code{problem.ReferenceInProgress, problem.ReferenceAlreadyPaid}
	if c.variant >= len(variants) {
		allowed = endingRefusals
	}
	if !errors.As(err, &why) || !slices.Contains(allowed, why.Code) {
		r.fail("%s was refused: %v", c.name, err)
		return
	}
	r.logf("%s: %s", c.name, why.Code)
	r.counts.add("answers: %s", why.Code)
	r.told[why.Code] = true
}

func (r *run) otherVariant(c *simulatedClient) bool {
	for _, op := range r.opOrder {
		if op.key == c.key && op.variant != c.variant {
			return true
		}
	}
	return false
}

func (r *run) answered(c *simulatedClient, res idemkeys.Result) {
	r.logf("%s: answer %d, replayed %t", c.name, res.Answer.Code, res.Replayed)
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
		r.fail(
			"%s was told that the operation %s; it should have been made anew", c.name, res.Status,
		)
	case strings.Contains(string(res.Answer.Body), "_never_made"):
		r.fail("%s got what must run anew as an answer", c.name)
	}
	r.answersSeen++
	op.lastSeen = r.answersSeen
	if op.firstSeen == 0 {
		op.firstSeen = r.answersSeen
	}
	if op.answer == nil {
		op.answer = &res.Answer
	} else if err := world.Same(*op.answer, res.Answer); err != nil {
		r.fail("%s: %v", op.name, err)
	}
	if r.holds && r.hold == "" && op.variant == theHold && res.Answer.Code == http.StatusCreated {
		r.hold = chargeIn(res.Answer)
		r.logf("the hold is that of %s", op.name)
	}
}

// carryOut has a service do what a client wants.
func (r *run) carryOut(
	ctx context.Context, s *charges.Service, q idemkeys.Request, variant int, hold string,
) (idemkeys.Result, error) {
	if variant >= len(variants) {
		return endings[variant-len(variants)].ask(ctx, s, q, hold)
	}
	p := variants[variant]
	p.Reference = r.reference
	return s.Create(ctx, q, p)
}
