package stripesim

import "strings"

// state is everything the simulator knows, rebuilt from the ledger at start. Server.mu guards it;
// apply is the only place that changes it, so that a replayed ledger and a live simulator can't
// differ.
type state struct {
	seq         int64
	charges     map[string]*chargeEntry
	allCharges  timeline[*chargeEntry]
	byCustomer  map[string]*timeline[*chargeEntry]
	refunds     map[string]*refundEntry
	allRefunds  timeline[*refundEntry]
	intents     map[string]*intentEntry
	allIntents  timeline[*intentEntry]
	disputes    map[string]*disputeEntry
	allDisputes timeline[*disputeEntry]
	warnings    map[string]*warningEntry
	allWarnings timeline[*warningEntry]
	customers   map[string]*customer
	custOrder   timeline[*customerEntry]
	events      map[string]*event
	allEvents   timeline[*event]
	keys        map[string]*keyEntry
	balance     map[string]int64 // captured minus refunded, by currency
	failed      int64            // charges that were declined
	pending     int64            // charges that are under way
}

type chargeEntry struct {
	position
	cur      *charge
	refunds  timeline[*refundEntry]
	disputes []*disputeEntry
}

type refundEntry struct {
	position
	cur *refund
}

type intentEntry struct {
	position
	cur *intent
}

type disputeEntry struct {
	position
	cur *dispute
}

type warningEntry struct {
	position
	cur *warning
}

type customerEntry struct {
	position
	cur *customer
}

// keyEntry is an idempotency key: reserved while its first request runs, then with what that was
// answered.
type keyEntry struct {
	print   string // fingerprint of the parameters
	path    string
	at      int64 // unix nanoseconds of the first request
	request string
	done    bool
	status  int
	answer  renderer
	raw     []byte // instead of answer, when a fault rule made the body
}

func newState() *state {
	return &state{
		charges: map[string]*chargeEntry{}, byCustomer: map[string]*timeline[*chargeEntry]{}, refunds: map[string]*refundEntry{},
		intents: map[string]*intentEntry{}, disputes: map[string]*disputeEntry{}, warnings: map[string]*warningEntry{},
		customers: map[string]*customer{}, events: map[string]*event{}, keys: map[string]*keyEntry{}, balance: map[string]int64{},
	}
}

const (
	opCharge   = "charge"
	opCapture  = "capture" // of a charge, or of an intent's
	opIntent   = "intent"
	opConfirm  = "confirm"
	opUpdate   = "update"
	opCancel   = "cancel"
	opRefund   = "refund"
	opCustomer = "customer"
	opKey      = "key" // only an answer to remember
	// what happens without a request: a dispute, a refund that fails, an authentication
	opChange = "change"
	opForget = "forget"
	opReset  = "reset"
)

// record is one line of the ledger: one request's whole effect, so that a crash keeps all of it or
// nothing.
type record struct {
	Op     string  `json:"op"`
	At     int64   `json:"at,omitempty"` // unix seconds by the simulator's clock
	Charge *charge `json:"charge,omitempty"`
	// what becomes of the charge right after the answer
	Later    *charge       `json:"later,omitempty"`
	Refund   *refund       `json:"refund,omitempty"`
	Customer *customer     `json:"customer,omitempty"`
	Dispute  *dispute      `json:"dispute,omitempty"`
	Warning  *warning      `json:"warning,omitempty"`
	Intent   *intent       `json:"intent,omitempty"`
	Expand   bool          `json:"expand,omitempty"` // the intent is answered with its charge
	Public   bool          `json:"public,omitempty"` // or only with what a browser may see
	Events   []eventRecord `json:"events,omitempty"`
	Request  string        `json:"request,omitempty"`
	Key      *keyRecord    `json:"key,omitempty"`
	Forget   string        `json:"forget,omitempty"`

	made   []*event // filled by apply
	latest *charge  // of the intent, as it is right after the request; filled by apply
}

type eventRecord struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

type keyRecord struct {
	Name   string    `json:"name"`
	Print  string    `json:"print"`
	Path   string    `json:"path"`
	At     int64     `json:"at"`
	Status int       `json:"status"`
	Err    *apiError `json:"err,omitempty"`
	Raw    string    `json:"raw,omitempty"`
}

func (rec *record) event(kind string) {
	rec.Events = append(rec.Events, eventRecord{ID: newID("evt_"), Type: kind})
}

// answer is the object that the request which made this record is answered with.
func (rec *record) answer() renderer {
	switch {
	case rec.Intent == nil:
	case rec.Public:
		return publicIntent{rec.Intent}
	case rec.Expand && rec.latest != nil:
		return expandedIntent{rec.Intent, rec.latest}
	default:
		return rec.Intent
	}
	switch rec.Op {
	case opCharge, opCapture:
		return rec.Charge
	case opRefund:
		return rec.Refund
	case opCustomer:
		return rec.Customer
	}
	return nil
}

func (st *state) apply(rec *record) {
	switch rec.Op {
	case opReset:
		running := st.keys
		*st = *newState()
		// a request that runs right now still has to find its reservation
		for name, k := range running {
			if !k.done {
				st.keys[name] = k
			}
		}
		return
	case opForget:
		for name, k := range st.keys {
			if k.done && (rec.Forget == "" || rec.Forget == name) {
				delete(st.keys, name)
			}
		}
		return
	}
	if rec.Charge != nil {
		st.putCharge(rec.Charge)
	}
	if rec.Refund != nil {
		st.putRefund(rec.Refund)
	}
	if rec.Customer != nil {
		st.customers[rec.Customer.ID] = rec.Customer
		st.custOrder.insert(&customerEntry{position: st.next(rec.Customer.Created), cur: rec.Customer})
	}
	if rec.Dispute != nil {
		st.putDispute(rec.Dispute)
	}
	if rec.Warning != nil {
		st.putWarning(rec.Warning)
	}
	if rec.Intent != nil {
		st.putIntent(rec.Intent)
		if latest := st.charges[rec.Intent.Charge]; latest != nil {
			rec.latest = latest.cur
		}
	}
	for _, e := range rec.Events {
		st.putEvent(rec, e)
	}
	if rec.Later != nil {
		st.putCharge(rec.Later)
	}
	if k := rec.Key; k != nil {
		entry := &keyEntry{print: k.Print, path: k.Path, at: k.At, request: rec.Request, done: true, status: k.Status}
		switch {
		case k.Raw != "":
			entry.raw = []byte(k.Raw)
		case k.Err != nil:
			entry.answer = k.Err
		default:
			entry.answer = rec.answer()
		}
		st.keys[k.Name] = entry
	}
}

func (st *state) next(created int64) position {
	st.seq++
	return position{created: created, seq: st.seq}
}

// count counts a charge that didn't succeed, or no longer does so.
func (st *state) count(status string, by int64) {
	switch status {
	case "failed":
		st.failed += by
	case pending:
		st.pending += by
	}
}

func (st *state) putCharge(c *charge) {
	entry := st.charges[c.ID]
	if entry == nil {
		entry = &chargeEntry{position: st.next(c.Created)}
		st.charges[c.ID] = entry
		st.allCharges.insert(entry)
		if c.Customer != "" {
			if st.byCustomer[c.Customer] == nil {
				st.byCustomer[c.Customer] = &timeline[*chargeEntry]{}
			}
			st.byCustomer[c.Customer].insert(entry)
		}
	} else {
		st.balance[entry.cur.Currency] -= entry.cur.net()
	}
	st.balance[c.Currency] += c.net()
	if was := entry.cur; was != nil {
		st.count(was.Status, -1)
	}
	st.count(c.Status, 1)
	entry.cur = c
}

// net is what a charge leaves on the account. What a partial capture let go counts as refunded with
// Stripe, but was never taken.
func (c *charge) net() int64 {
	if !c.Captured || c.Status != succeeded {
		return 0
	}
	return c.Amount - c.AmountRefunded
}

func (st *state) putRefund(r *refund) {
	if entry := st.refunds[r.ID]; entry != nil {
		entry.cur = r
		return
	}
	entry := &refundEntry{position: st.next(r.Created), cur: r}
	st.refunds[r.ID] = entry
	st.allRefunds.insert(entry)
	if c := st.charges[r.Charge]; c != nil {
		c.refunds.insert(entry)
	}
}

func (st *state) putIntent(in *intent) {
	if entry := st.intents[in.ID]; entry != nil {
		entry.cur = in
		return
	}
	entry := &intentEntry{position: st.next(in.Created), cur: in}
	st.intents[in.ID] = entry
	st.allIntents.insert(entry)
}

func (st *state) putDispute(d *dispute) {
	if entry := st.disputes[d.ID]; entry != nil {
		entry.cur = d
		return
	}
	entry := &disputeEntry{position: st.next(d.Created), cur: d}
	st.disputes[d.ID] = entry
	st.allDisputes.insert(entry)
	if c := st.charges[d.Charge]; c != nil {
		c.disputes = append(c.disputes, entry)
	}
}

func (st *state) putEvent(rec *record, e eventRecord) {
	v := &event{position: st.next(rec.At), id: e.ID, kind: e.Type, request: rec.Request}
	if rec.Key != nil {
		v.key = rec.Key.Name
	}
	switch {
	case strings.HasPrefix(e.Type, "charge.dispute."):
		v.object, v.live = rec.Dispute, rec.Dispute.Live
	case strings.HasPrefix(e.Type, "radar.early_fraud_warning."):
		v.object, v.live = rec.Warning, rec.Warning.Live
	case strings.HasPrefix(e.Type, "refund."), e.Type == "charge.refund.updated":
		v.object, v.live = rec.Refund, rec.Refund.Live
	case strings.HasPrefix(e.Type, "payment_intent."):
		v.object, v.live = rec.Intent, rec.Intent.Live
	case e.Type == "customer.created":
		v.object, v.live = rec.Customer, rec.Customer.Live
	default:
		v.object, v.live = rec.Charge, rec.Charge.Live
	}
	st.events[v.id] = v
	st.allEvents.insert(v)
	rec.made = append(rec.made, v)
}
