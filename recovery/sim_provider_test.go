package recovery_test

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"slices"
	"time"

	"paidonce/provider"
	"paidonce/provider/stripesim"
)

// What can go wrong with a call. Those of the wire and of Stripe's answers happen in stripesim, so that the adapter judges them; those that need
// time happen here, in the bubble's time.
var (
	simChargeFaults = map[string]*stripesim.Fault{
		"dropped before":        {Type: stripesim.DropBefore},
		"dropped after":         {Type: stripesim.DropAfter},
		"reset after":           {Type: stripesim.DropAfter, Wire: stripesim.WireReset},
		"truncated":             {Type: stripesim.Truncate},
		"garbage":               {Type: stripesim.Garbage},
		"500 stored, no effect": {Type: stripesim.StatusBefore, Status: 500, Store: true},
		"500 stored, effect":    {Type: stripesim.StatusAfter, Status: 500},
		"503 not stored":        {Type: stripesim.StatusBefore, Status: 503},
		"500 not stored":        {Type: stripesim.StatusBefore, Status: 500},
		"429":                   {Type: stripesim.StatusBefore, Status: 429},
		"401":                   {Type: stripesim.StatusBefore, Status: 401},
		"contradicted":          {Type: stripesim.Garbage, Body: `{"id":"ch_other","object":"charge","amount":1,"currency":"usd","livemode":false,"status":"succeeded","metadata":{}}`},
		"refused connection":    nil,
		"answered too late":     nil, // executed within the time, answered after it
		"delivered late":        nil, // executed when its sender has long given up
		"never delivered":       nil,
	}
	simLookupFaults = map[string]*stripesim.Fault{
		"look-up 500":        {Type: stripesim.StatusBefore, Status: 500},
		"look-up 429":        {Type: stripesim.StatusBefore, Status: 429},
		"look-up 401":        {Type: stripesim.StatusBefore, Status: 401},
		"look-up truncated":  {Type: stripesim.Truncate},
		"look-up incomplete": {Type: stripesim.Garbage, Body: `{"object":"list","data":[],"has_more":true,"url":"/v1/charges"}`},
		"look-up timed out":  nil,
	}
)

// simLate is a request that is still on its way.
type simLate struct {
	request provider.ChargeRequest
	sent    time.Duration // of the run
}

// simNetwork is how long a request may be on its way. The proof of absence rests on such a bound: nothing that was sent arrives after all the
// look-ups over LookupSpan have missed. A run's span of two minutes is this, the run of an owner that sends at its very end, and the
// clock's jumps, with some to spare.
const simNetwork = 45 * time.Second

// simProvider is the provider as an instance sees it.
type simProvider struct {
	provider.Provider // what a run does not use
	in                *simInstance
}

// simClocks is the provider's clock, which its answers tell, in the bubble's time.
type simClocks struct{ *simLane }

func (c simClocks) Now() (time.Time, bool) {
	return time.UnixMicro(c.database.Load() + c.ahead.Load()), true
}

func (simClocks) Account(context.Context) (provider.Account, error) { return provider.Account{}, nil }

func (p simProvider) Charge(ctx context.Context, r provider.ChargeRequest) (o provider.ChargeOutcome, err error) {
	run := p.in.run
	if run.mutation.request != nil {
		r = run.mutation.request(r, run)
	}
	order := p.in.stop(ctx, "Charge", r.Tags.Operation)
	if order.fate == dieInside {
		runtime.Goexit()
	}
	if ctx.Err() == nil {
		run.noteSent(r, order.fault)
	}
	switch order.fault {
	case "refused connection":
		return o, &provider.Error{Kind: provider.NotExecuted, Message: "connection refused"}
	case "never delivered":
		return o, p.timeOut(ctx)
	case "delivered late":
		if ctx.Err() == nil {
			run.mu.Lock()
			run.late = append(run.late, simLate{r, run.elapsed})
			run.mu.Unlock()
		}
		return o, p.timeOut(ctx)
	}
	p.carry(ctx, order.fault, simChargeFaults[order.fault], http.MethodPost, func(ctx context.Context) { o, err = p.in.run.lane.psp.Charge(ctx, r) })
	if order.fault == "answered too late" {
		o, err = provider.ChargeOutcome{}, p.timeOut(ctx)
	}
	if order.fate == dieAfter {
		runtime.Goexit()
	}
	if run.mutation.chargeError != nil && err != nil {
		err = run.mutation.chargeError(err)
	}
	return o, err
}

func (p simProvider) FindCharge(ctx context.Context, l provider.Lookup) (hits []provider.Charge, err error) {
	order := p.in.stop(ctx, "FindCharge", l.Tags.Operation)
	if order.fate == dieInside {
		runtime.Goexit()
	}
	if order.fault == "look-up timed out" {
		err = p.timeOut(ctx)
	} else {
		p.carry(ctx, order.fault, simLookupFaults[order.fault], http.MethodGet, func(ctx context.Context) { hits, err = p.in.run.lane.psp.FindCharge(ctx, l) })
	}
	if order.fate == dieAfter {
		runtime.Goexit()
	}
	if f := p.in.run.mutation.lookup; f != nil {
		return f(hits, err)
	}
	return hits, err
}

// GetCharge is what a person's word is checked by.
func (p simProvider) GetCharge(ctx context.Context, id string) (c *provider.Charge, err error) {
	if p.in.stop(ctx, "GetCharge", id).fate == dieInside {
		runtime.Goexit()
	}
	p.carry(ctx, "", nil, http.MethodGet, func(ctx context.Context) { c, err = p.in.run.lane.psp.GetCharge(ctx, id) })
	return c, err
}

// carry makes a call outside the bubble, with a fault armed for it. Nobody else is calling: the scheduler lets one goroutine go at a time.
func (p simProvider) carry(ctx context.Context, name string, f *stripesim.Fault, method string, call func(context.Context)) {
	l := p.in.run.lane
	out := context.Background()
	if ctx.Err() != nil { // the adapter says what that means
		var cancel context.CancelFunc
		out, cancel = context.WithCancel(out)
		cancel()
		f = nil
	}
	l.carry(func() {
		if f != nil {
			if _, err := l.server.AddFault(stripesim.Rule{Match: stripesim.Match{Method: method, Path: "/v1/charges"}, Count: 1, Fault: *f}); err != nil {
				panic(name + ": " + err.Error())
			}
			defer l.server.ClearFaults()
		}
		call(out)
	})
}

// timeOut waits as long as the adapter would.
func (p simProvider) timeOut(ctx context.Context) error {
	t := time.NewTimer(p.in.run.cfg.ProviderTimeout)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return &provider.Error{Kind: provider.Unknown, Message: "no answer in time"}
}

// noteSent holds the provider's view of an operation to what it was at its first attempt.
func (r *simRun) noteSent(q provider.ChargeRequest, fault string) {
	frozen, _ := json.Marshal(q)
	r.mu.Lock()
	defer r.mu.Unlock()
	op := r.ops[q.Tags.Operation]
	if op == nil {
		r.fail("a charge was sent for %s, which nobody claimed", q.Tags.Operation)
		return
	}
	if op.sent != "" && op.sent != string(frozen) {
		r.fail("%s was sent with other parameters:\n%s\n%s", op.name, op.sent, frozen)
	}
	op.sent = string(frozen)
	// The window counts from the first request that may have been executed, in runs that began within it, by a clock that was turned.
	if !r.mutation.books && op.reached && r.elapsed-op.reachedAt > r.cfg.KeyWindow+r.cfg.StaleAfter+time.Minute {
		r.fail("%s was sent %v after it was sent first: past the window", op.name, r.elapsed-op.reachedAt)
	}
	if !op.reached && !slices.Contains([]string{"429", "401", "refused connection"}, fault) {
		op.reached, op.reachedAt = true, r.elapsed
	}
}

// deliver lets late requests arrive: those that are older than age.
func (r *simRun) deliver(age time.Duration) {
	r.mu.Lock()
	var arrive, stay []simLate
	for _, l := range r.late {
		if r.elapsed-l.sent >= age {
			arrive = append(arrive, l)
		} else {
			stay = append(stay, l)
		}
	}
	r.late = stay
	r.mu.Unlock()
	for _, l := range arrive {
		r.say("a late request of %s arrives", r.ops[l.request.Tags.Operation].name)
		r.lane.carry(func() { _, _ = r.lane.psp.Charge(context.Background(), l.request) })
	}
}
