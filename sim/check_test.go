package sim_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"paidonce/provider"
)

// finish ends the faults, lets what runs come to rest, makes passes until nothing is due, and
// compares the provider's records with ours.
func (r *run) finish() {
	if len(r.failures) > 0 {
		return
	}
	r.logf("no more faults")
	r.calm, r.mix.hold, r.mix.places = true, 0, nil
	r.deliver(0)
	r.rest()
	const rounds = 60
	for round := 0; len(r.failures) == 0; round++ {
		if round == rounds {
			r.fail(
				"after %d passes without faults, %d operations are unfinished", rounds,
				r.unfinished(),
			)
			return
		}
		r.retryParked(r.live[0])
		if r.unfinished() == 0 {
			break
		}
		r.pass(5 * time.Minute)
		r.cron("pass")
		r.rest()
	}
	if len(r.failures) == 0 {
		r.checkRecords()
		r.checkHold()
		r.checkLeases()
		r.checkReplays()
	}
}

// rest lets everybody go on until nobody does anything any more.
func (r *run) rest() {
	for idle, steps := 0, 0; idle < 3 && len(r.failures) == 0; steps++ {
		if steps > 5000 {
			r.fail("it does not come to rest")
			return
		}
		if len(r.stops) > 0 {
			idle = 0
			r.release(r.stops[0], instruction{})
			r.deliverAnswers()
			continue
		}
		idle++
		r.pass(6 * time.Second) // longer than anybody waits for the database
		r.deliverAnswers()
	}
}

func (r *run) unfinished() int {
	var n int
	r.must(
		r.lane.query(
			`SELECT count(*)::int FROM idempotency_keys WHERE status = 'in_progress'`,
			func(row interface{ Scan(...any) error }) error { return row.Scan(&n) },
		),
	)
	return n
}

// ourCharge is a charge in our records, with what belongs to it.
type ourCharge struct {
	operation, status, currency, code, providerID string
	amount, captured, refunded                    int64
	created, settled                              time.Time
	events                                        int
	keyed, finished                               bool // its key is still there, finished
}

type ledgerCharge struct {
	ID, Status, Currency string
	Key                  string `json:"idempotency_key"`
	Amount               int64
	AmountCaptured       int64 `json:"amount_captured"`
	AmountRefunded       int64 `json:"amount_refunded"`
	Captured             bool
	Metadata             map[string]string
}

// ledger reads the provider's own records, by operation.
func (r *run) ledger() map[string][]ledgerCharge {
	w := httptest.NewRecorder()
	r.lane.carry(
		func() { r.lane.server.ServeHTTP(w, httptest.NewRequest("GET", "/_sim/ledger", nil)) },
	)
	var book struct{ Charges []ledgerCharge }
	r.must(json.Unmarshal(w.Body.Bytes(), &book))
	byOperation := map[string][]ledgerCharge{}
	for _, c := range book.Charges {
		id := c.Metadata[provider.MetadataOperation]
		byOperation[id] = append(byOperation[id], c)
	}
	return byOperation
}

// checkRecords compares our charges, events and keys with the provider's ledger.
//
// Nothing is in the air here: every request that was sent has arrived or never will. So no order of
// events is left in which a charge that we call failed may succeed later. While a run lasts there
// is one: a request that is still on its way. The product concludes an absence only after look-ups
// over LookupSpan, and a run lets requests be on their way for less than what that span leaves
// (networkMax). A request that the network held back for longer than the whole span, after two 5xx
// that the provider did not store, would be a charge that nobody expects any more; audit finds it.
// docs/simulation.md tells more.
func (r *run) checkRecords() {
	book := r.ledger()
	var ours []ourCharge
	r.must(r.lane.query(`SELECT c.operation_id, c.status, c.currency, coalesce(c.failure_code, ''), coalesce(c.provider_id, ''), c.amount, c.amount_captured,
			c.amount_refunded, c.created_at, coalesce(c.settled_at, c.created_at), (SELECT count(*)::int FROM outbox o WHERE o.operation_id = c.operation_id),
			k.key IS NOT NULL, coalesce(k.status <> 'in_progress', false)
		FROM charges c LEFT JOIN idempotency_keys k ON k.operation_id = c.operation_id ORDER BY c.created_at`,
		func(row interface{ Scan(...any) error }) error {
			var c ourCharge
			err := row.Scan(
				&c.operation, &c.status, &c.currency, &c.code, &c.providerID, &c.amount,
				&c.captured, &c.refunded, &c.created, &c.settled, &c.events, &c.keyed, &c.finished,
			)
			ours = append(ours, c)
			return err
		}))
	r.checkReference(book)
	answered := lastAnswers{}
	for _, c := range ours {
		op := r.ops[c.operation]
		if op == nil {
			r.fail("a charge of an operation that nobody claimed: %+v", c)
			continue
		}
		r.checkCharge(op, c, book[c.operation])
		delete(book, c.operation)
		if c.code == "charge_never_made" || c.status == "pending" {
			r.counts.add("operations proven absent")
			continue
		}
		r.checkOrder(answered, op, c)
	}
	r.checkKeys(answered)
	for id, orphans := range book {
		r.fail("the provider has %d charges of %q, which is not in our books", len(orphans), id)
	}
}

// checkReference: whatever happened, one charge took the money of the order. One that was let go
// of, or wholly refunded, makes room for another.
func (r *run) checkReference(book map[string][]ledgerCharge) {
	if r.reference == "" {
		return
	}
	var paid []string
	for _, charges := range book {
		for _, c := range charges {
			if c.Status == "succeeded" && c.AmountRefunded < c.Amount && c.Metadata[provider.MetadataReference] == r.reference {
				paid = append(paid, c.ID)
			}
		}
	}
	r.counts.add("orders paid by %d charges", len(paid))
	if len(paid) > 1 {
		slices.Sort(paid)
		r.fail("one order was paid by %d charges: %s", len(paid), strings.Join(paid, ", "))
	}
}

// lastAnswers is the operation that answered each key last, and when it was settled.
type lastAnswers map[string]struct {
	op      *trackedOp
	settled time.Time
	told    int // the latest answer of any operation of the key so far
}

// checkOrder compares an operation with those that its key stood for before. The key may stand for
// a new one when it was proven that nothing moved, or when its retention is over: by the database's
// clock, which is turned by up to a minute in all. Retention counts from when the outcome was
// stored first: a database that was put back may have it stored again.
func (r *run) checkOrder(answered lastAnswers, op *trackedOp, c ourCharge) {
	settled := c.settled
	if !op.settled.IsZero() && op.settled.Before(settled) {
		settled = op.settled
	}
	before := answered[op.key]
	if before.op != nil && c.created.Sub(before.settled) < 24*time.Hour-time.Minute {
		r.fail(
			"%s: %s was settled %v before %s was claimed: one key, two answers", op.key,
			before.op.name, c.created.Sub(before.settled), op.name,
		)
	}
	if op.firstSeen > 0 && before.told > op.firstSeen {
		r.fail("%s: an older answer was told after that of %s", op.key, op.name)
	}
	before.op, before.settled, before.told = op, settled, max(before.told, op.lastSeen)
	answered[op.key] = before
}

// checkKeys holds each key whose time is not over, and each that was rebuilt, to the operation that
// answered it last.
func (r *run) checkKeys(answered lastAnswers) {
	r.must(r.lane.query(`SELECT operation_id FROM idempotency_keys WHERE status = 'completed' AND key LIKE 'key-%' AND expires_at > sim.clock_timestamp()
			UNION ALL SELECT operation_id FROM recovered_keys WHERE expires_at > sim.clock_timestamp()`,
		func(row interface{ Scan(...any) error }) error {
			var id string
			if err := row.Scan(&id); err != nil {
				return err
			}
			if op := r.ops[id]; op != nil && answered[op.key].op != op {
				r.fail("%s stands for %s, which is not the last that answered it", op.key, op.name)
			}
			return nil
		}))
}

func (r *run) checkCharge(op *trackedOp, c ourCharge, made []ledgerCharge) {
	if c.status == "pending" {
		r.fail("%s is pending and nobody works on it (its key is there: %t)", op.name, c.keyed)
		return
	}
	if c.keyed && !c.finished {
		r.fail("%s is settled and its key is not", op.name)
	}
	if c.events != 1 {
		r.fail("%s has %d events", op.name, c.events)
	}
	if c.refunded < 0 || c.refunded > c.captured || c.captured > c.amount {
		r.fail("%s: amount %d, captured %d, refunded %d", op.name, c.amount, c.captured, c.refunded)
	}
	if len(made) > 1 {
		r.fail("the provider made %d charges of %s", len(made), op.name)
		return
	}
	switch {
	case c.status == "succeeded":
		if len(made) != 1 || made[0].Status != "succeeded" || made[0].ID != c.providerID ||
			made[0].Amount != c.amount || made[0].Currency != c.currency || made[0].AmountCaptured != c.captured && made[0].Captured {
			r.fail("%s: we say %+v, the provider says %+v", op.name, c, made)
		}
	case len(made) == 1 && made[0].Status == "succeeded":
		r.fail("%s failed (%s), and the provider made a charge: %+v", op.name, c.code, made)
	case len(made) == 1 && c.providerID != made[0].ID:
		r.fail("%s: we say it failed as %q, the provider as %q", op.name, c.providerID, made[0].ID)
	case len(made) == 0 && c.providerID != "":
		r.fail("%s: the provider has no %s", op.name, c.providerID)
	}
	if len(made) == 1 && op.sent != "" {
		var sent provider.ChargeRequest
		r.must(json.Unmarshal([]byte(op.sent), &sent))
		if sent.IdempotencyKey != made[0].Key {
			r.fail(
				"%s was sent under %s and made under %s", op.name, sent.IdempotencyKey, made[0].Key,
			)
		}
	}
}

// checkLeases reads the operations' logs: a lease is taken when it was given back or is stale, and
// an operation is parked only when the provider contradicted itself.
func (r *run) checkLeases() {
	type lease struct {
		at   time.Time
		free bool
	}
	leases, parks := map[string]lease{}, map[string]int{}
	r.must(r.lane.query(`SELECT c.operation_id, 'claimed', c.created_at, 0::bigint FROM charges c
		UNION ALL SELECT operation_id, 'claimed', created_at, 0 FROM idempotency_keys WHERE kind <> 'charge.create'
		UNION ALL SELECT operation_id, event, at, n FROM operation_log ORDER BY 4, 3`,
		func(row interface{ Scan(...any) error }) error {
			var id, event string
			var at time.Time
			var n int64
			if err := row.Scan(&id, &event, &at, &n); err != nil {
				return err
			}
			l := leases[id]
			switch event {
			case "claimed":
				l.at = at
			case "resumed":
				if !l.free && at.Sub(l.at) < r.cfg.StaleAfter-time.Millisecond {
					r.fail(
						"%s was taken over %v after its lease was taken", r.ops[id].name,
						at.Sub(l.at),
					)
				}
				r.counts.add("take-overs, free lease: %t", l.free)
				l = lease{at: at}
			case "parked":
				l.free = true
				parks[id]++
				r.counts.add("parks")
			default:
				l.free = true
			}
			leases[id] = l
			return nil
		}))
	for id, n := range parks {
		if op := r.ops[id]; n > op.contradicted+op.resolves || op.contradicted == 0 {
			r.fail(
				"%s was parked %d times, and the provider contradicted itself %d times", op.name, n,
				op.contradicted,
			)
		}
	}
}

// checkReplays asks for every key once more: what is stored is what everybody was told.
func (r *run) checkReplays() {
	kept := map[string]string{}
	r.must(r.lane.query(`SELECT key, operation_id FROM idempotency_keys WHERE status = 'completed' AND expires_at > sim.clock_timestamp() + interval '1 minute'`,
		func(row interface{ Scan(...any) error }) error {
			var key, id string
			err := row.Scan(&key, &id)
			kept[key] = id
			return err
		}))
	for _, key := range r.keys {
		op := r.ops[kept[key]]
		if op == nil {
			continue
		}
		c := &simulatedClient{
			name: fmt.Sprintf("the last client of %s", key), key: key, variant: op.variant,
		}
		r.clients = append(r.clients, c)
		r.send(c, r.live[0])
		call := c.call
		r.rest()
		if !call.heard || call.err != nil || !call.res.Replayed || call.res.OperationID != op.id {
			r.fail("%s is not replayed: %+v, %v", op.name, call.res, call.err)
		}
	}
}
