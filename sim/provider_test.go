package sim_test

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

// What can go wrong with a call. Those of the wire and of Stripe's answers happen in stripesim, so
// that the adapter judges them; those that need time happen here, in the bubble's time.
var (
	moveFaults = map[string]*stripesim.Fault{
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
		"contradicted": {
			Type: stripesim.Garbage,
			Body: `{"id":"ch_other","object":"charge","amount":1,"currency":"usd","livemode":false,"status":"succeeded","metadata":{}}`,
		},
		"refused connection": nil,
		"answered too late":  nil, // executed within the time, answered after it
		"delivered late":     nil, // executed when its sender has long given up
		"never delivered":    nil,
	}
	lookupFaults = map[string]*stripesim.Fault{
		"look-up 500":       {Type: stripesim.StatusBefore, Status: 500},
		"look-up 429":       {Type: stripesim.StatusBefore, Status: 429},
		"look-up 401":       {Type: stripesim.StatusBefore, Status: 401},
		"look-up truncated": {Type: stripesim.Truncate},
		"look-up incomplete": {
			Type: stripesim.Garbage,
			Body: `{"object":"list","data":[],"has_more":true,"url":"/v1/charges"}`,
		},
		"look-up timed out": nil,
	}
)

// lateRequest is a request that is still on its way.
type lateRequest struct {
	operation string
	arrive    func()
	sent      time.Duration // of the run
}

// networkMax is how long a request may be on its way. The proof of absence rests on such a bound:
// nothing that was sent arrives after all the look-ups over LookupSpan have missed. A run's span of
// two minutes is this, the run of an owner that sends at its very end, and the clock's jumps, with
// some to spare.
const networkMax = 45 * time.Second

// simulatedProvider is the provider as an instance sees it.
type simulatedProvider struct {
	provider.Provider // what a run does not use
	in                *process
}

// laneClock is the provider's clock, which its answers tell, in the bubble's time.
type laneClock struct{ *lane }

func (c laneClock) Now() (time.Time, bool) {
	return time.UnixMicro(c.database.Load() + c.providerAhead.Load()), true
}

func (laneClock) Account(context.Context) (provider.Account, error) {
	return provider.Account{}, nil
}

func (p simulatedProvider) Charge(
	ctx context.Context, r *provider.ChargeRequest,
) (o provider.ChargeOutcome, err error) {
	run := p.in.run
	if run.mutation.request != nil {
		mutated := run.mutation.request(*r, run)
		r = &mutated
	}
	o, err = move(ctx, p, "Charge", r.Tags.Operation, *r,
		func(ctx context.Context) (provider.ChargeOutcome, error) {
			return run.lane.psp.Charge(ctx, r)
		})
	if run.mutation.chargeError != nil && err != nil {
		err = run.mutation.chargeError(err)
	}
	return o, err
}

func (p simulatedProvider) Capture(
	ctx context.Context, r provider.CaptureRequest,
) (provider.ChargeOutcome, error) {
	return move(ctx, p, "Capture", r.Tags.Operation, r,
		func(ctx context.Context) (provider.ChargeOutcome, error) {
			return p.in.run.lane.psp.Capture(ctx, r)
		})
}

func (p simulatedProvider) Refund(
	ctx context.Context, r provider.RefundRequest,
) (provider.RefundOutcome, error) {
	return move(ctx, p, "Refund", r.Tags.Operation, r,
		func(ctx context.Context) (provider.RefundOutcome, error) {
			return p.in.run.lane.psp.Refund(ctx, r)
		})
}

// move makes a call that moves money.
func move[T any](
	ctx context.Context, p simulatedProvider, place, operation string, request any,
	call func(context.Context) (T, error),
) (o T, err error) {
	run := p.in.run
	var none T
	order := p.in.stop(ctx, place, operation)
	if order.fate == dieInside {
		runtime.Goexit()
	}
	if ctx.Err() == nil {
		run.noteSent(operation, request, order.fault)
	}
	switch order.fault {
	case "refused connection":
		return none, &provider.Error{Kind: provider.NotExecuted, Message: "connection refused"}
	case "never delivered":
		return none, p.timeOut(ctx)
	case "delivered late":
		if ctx.Err() == nil {
			run.mu.Lock()
			run.late = append(run.late, lateRequest{
				operation, func() { _, _ = call(context.Background()) }, run.elapsed,
			})
			run.mu.Unlock()
		}
		return none, p.timeOut(ctx)
	}
	p.carry(
		ctx, order.fault, moveFaults[order.fault], http.MethodPost,
		func(ctx context.Context) { o, err = call(ctx) },
	)
	if order.fault == "answered too late" {
		o, err = none, p.timeOut(ctx)
	}
	if order.fate == dieAfter {
		runtime.Goexit()
	}
	return o, err
}

func (p simulatedProvider) FindCharge(
	ctx context.Context, l provider.Lookup,
) ([]provider.Charge, error) {
	hits, err := look(ctx, p, "FindCharge", l.Tags.Operation,
		func(ctx context.Context) ([]provider.Charge, error) {
			return p.in.run.lane.psp.FindCharge(ctx, l)
		})
	if f := p.in.run.mutation.lookup; f != nil {
		return f(hits, err)
	}
	return hits, err
}

func (p simulatedProvider) FindRefund(
	ctx context.Context, l provider.Lookup,
) ([]provider.Refund, error) {
	return look(ctx, p, "FindRefund", l.Tags.Operation,
		func(ctx context.Context) ([]provider.Refund, error) {
			return p.in.run.lane.psp.FindRefund(ctx, l)
		})
}

// GetCharge is also the read by which an operator's decision is checked.
func (p simulatedProvider) GetCharge(ctx context.Context, id string) (*provider.Charge, error) {
	c, err := look(ctx, p, "GetCharge", id, func(ctx context.Context) (*provider.Charge, error) {
		return p.in.run.lane.psp.GetCharge(ctx, id)
	})
	if f := p.in.run.mutation.getCharge; f != nil {
		return f(c, err)
	}
	return c, err
}

func (p simulatedProvider) RefundsOf(ctx context.Context, id string) ([]provider.Refund, error) {
	return look(ctx, p, "RefundsOf", id, func(ctx context.Context) ([]provider.Refund, error) {
		return p.in.run.lane.psp.RefundsOf(ctx, id)
	})
}

// look makes a call that reads.
func look[T any](
	ctx context.Context, p simulatedProvider, place, subject string,
	call func(context.Context) (T, error),
) (found T, err error) {
	order := p.in.stop(ctx, place, subject)
	if order.fate == dieInside {
		runtime.Goexit()
	}
	if order.fault == "look-up timed out" {
		err = p.timeOut(ctx)
	} else {
		p.carry(
			ctx, order.fault, lookupFaults[order.fault], http.MethodGet,
			func(ctx context.Context) { found, err = call(ctx) },
		)
	}
	if order.fate == dieAfter {
		runtime.Goexit()
	}
	return found, err
}

// carry makes a call outside the bubble, with a fault armed for it. Nobody else is calling: the
// scheduler lets one goroutine go at a time.
func (p simulatedProvider) carry(
	ctx context.Context, name string, f *stripesim.Fault, method string, call func(context.Context),
) {
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
			if _, err := l.server.AddFault(
				stripesim.Rule{
					Match: stripesim.Match{Method: method, Path: "/v1/"}, Count: 1, Fault: *f,
				},
			); err != nil {
				panic(name + ": " + err.Error())
			}
			defer l.server.ClearFaults()
		}
		call(out)
	})
}

// timeOut waits as long as the adapter would.
func (p simulatedProvider) timeOut(ctx context.Context) error {
	t := time.NewTimer(p.in.run.cfg.CallLimit)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return &provider.Error{Kind: provider.Unknown, Message: "no answer in time"}
}

// noteSent holds the provider's view of an operation to what it was at its first attempt.
func (r *run) noteSent(operation string, request any, fault string) {
	frozen, _ := json.Marshal(request)
	r.mu.Lock()
	defer r.mu.Unlock()
	op := r.ops[operation]
	if op == nil {
		r.fail("a request was sent for %s, which nobody claimed", operation)
		return
	}
	if op.sent != "" && op.sent != string(frozen) {
		r.fail("%s was sent with other parameters:\n%s\n%s", op.name, op.sent, frozen)
	}
	op.sent = string(frozen)
	// The window counts from the first request that may have been executed, in runs that began
	// within it, by a clock that was turned.
	if !r.mutation.atEnd && op.reached &&
		r.elapsed-op.reachedAt > r.cfg.SendWindow+r.cfg.StaleAfter+time.Minute {
		r.fail(
			"%s was sent %v after it was sent first: past the window", op.name,
			r.elapsed-op.reachedAt,
		)
	}
	if !op.reached && !slices.Contains([]string{"429", "401", "refused connection"}, fault) {
		op.reached, op.reachedAt = true, r.elapsed
	}
}

// deliver lets late requests arrive: those that are older than age.
func (r *run) deliver(age time.Duration) {
	r.mu.Lock()
	var arrive, stay []lateRequest
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
		r.logf("a late request of %s arrives", r.ops[l.operation].name)
		r.lane.carry(l.arrive)
	}
}
