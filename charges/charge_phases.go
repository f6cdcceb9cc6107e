package charges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/outbox"
	"paidonce/problem"
	"paidonce/provider"
)

// The phases. The frozen parameters are a [provider.ChargeRequest].

// chargeKind is the charge in one call as a kind of operation.
type chargeKind struct{ *phaseDeps }

// charge finds out, or brings about, what the operation's frozen request comes to.
func (k chargeKind) charge(ctx context.Context, op *idemkeys.Operation) (*idemkeys.Commit, error) {
	r, err := readFrozen[provider.ChargeRequest](op.Params)
	if err != nil {
		return nil, err
	}
	if err := k.store.checkPending(ctx, op); err != nil {
		return nil, err
	}
	r.Claim = dated(r.Claim, r.ClaimedAt)
	end := &chargeEnd{store: k.store, op: op, request: r}
	return attempt[provider.Charge]{
		look: func(clocks reading) (*provider.Charge, error) {
			s := search{&k.cfg, op, r, clocks}
			hits, err := k.provider.FindCharge(ctx, s.lookup(ctx))
			return result(
				s, hits, err, "charge",
				func(got *provider.Charge) error { return matchesCharge(got, r) },
			)
		},
		send: func() (*provider.Charge, *provider.Refusal, error) {
			outcome, err := k.provider.Charge(ctx, r)
			return outcome.Charge, outcome.Refusal, err
		},
		settled: infallible(end.settled), refused: infallible(end.refused),
		neverMade: end.neverMade,
	}.run(ctx, &k.cfg, op)
}

// matchesCharge returns an error if a provider's charge differs from what was requested.
func matchesCharge(got *provider.Charge, r *provider.ChargeRequest) error {
	return matchesRequest(
		"charge", got.ID, r,
		&provider.ChargeRequest{
			Amount: got.Amount, Currency: got.Currency, Livemode: got.Livemode, Tags: got.Tags,
		},
	)
}

// matchesRequest compares a charge or intent of the provider, in got, with what was requested.
func matchesRequest(noun, id string, r, got *provider.ChargeRequest) error {
	if got.Amount != r.Amount || got.Currency != r.Currency || got.Livemode != r.Livemode ||
		got.Tags != r.Tags {
		return fmt.Errorf("the provider's %s %s is of %d %s (livemode %t, operation %q of %q), asked for were %d %s (livemode %t, operation %q of %q)",
			noun, id, got.Amount, got.Currency, got.Livemode, got.Tags.Operation,
			got.Tags.Installation,
			r.Amount, r.Currency, r.Livemode, r.Tags.Operation, r.Tags.Installation)
	}
	return nil
}

// The last commit.

// chargeEnd makes the commit that ends a charge's operation, of either flow.
type chargeEnd struct {
	store    *Store
	op       *idemkeys.Operation
	request  *provider.ChargeRequest
	intentID string // of the intent through which the charge is made; empty in the flow of one call
}

// pending is the charge before it has an outcome.
func (e *chargeEnd) pending() Charge {
	charge := pendingCharge(e.op, e.request)
	charge.PaymentIntent = db.OrNil(e.intentID)
	return charge
}

// settled is the commit for a charge that the provider has.
func (e *chargeEnd) settled(got *provider.Charge) *idemkeys.Commit {
	if got.Status == provider.Failed {
		return e.refused(failureOf(got))
	}
	charge := e.pending()
	charge.Status = string(got.Status)
	charge.Paid = got.Status == provider.Succeeded
	charge.Captured = got.Captured && charge.Paid
	if charge.Captured {
		charge.AmountCaptured = got.AmountCaptured
	}
	// Whether it is disputed by now, each dispute tells by itself.
	charge.Outcome, charge.Details = outcomeOf(got.Outcome), detailsOf(got.Details)
	charge.Provider.ID = db.OrNil(got.ID)
	return e.created(charge)
}

// created is the commit for a charge that was made. Its event shows it without what the request
// asked for besides.
func (e *chargeEnd) created(charge Charge) *idemkeys.Commit {
	shown := charge
	if e.request.WithRefunds {
		shown.Refunds = noRefunds(charge.ID)
	}
	return e.commit(idemkeys.Completed, createdAnswer(chargesPath+charge.ID, shown), charge)
}

// failureOf is why the provider's charge failed.
func failureOf(got *provider.Charge) *provider.Refusal {
	return &provider.Refusal{
		Decline: true, ChargeID: got.ID, Code: got.FailureCode, DeclineCode: declineCode(got),
		Message: got.FailureMessage,
	}
}

// declineCode is the decline code of the provider's answer: the charge itself keeps it as the
// reason of its outcome.
func declineCode(got *provider.Charge) string {
	if got.Outcome == nil || got.Outcome.NetworkStatus != "declined_by_network" {
		return ""
	}
	return got.Outcome.Reason
}

// refused is the commit for a refusal: a decline, or a request that the provider will not carry
// out.
func (e *chargeEnd) refused(no *provider.Refusal) *idemkeys.Commit {
	code := problem.ProviderRefused
	if no.Decline {
		code = problem.CardDeclined
	}
	p := refusal(code, no, e.op.ResourceID, "charge")
	charge := e.failed(p)
	charge.Provider.ID = db.OrNil(no.ChargeID)
	return e.commit(idemkeys.Completed, errorAnswer(e.op, p), charge)
}

// neverMade is the commit for a charge that is proven not to exist at the provider: nothing moved,
// and the same request may run anew.
func (e *chargeEnd) neverMade() *idemkeys.Commit {
	p := ofCharge(problem.ChargeNeverMade, e.op.ResourceID)
	return e.commit(idemkeys.Failed, errorAnswer(e.op, p), e.failed(p))
}

func (e *chargeEnd) failed(p *problem.Error) Charge {
	charge := e.pending()
	charge.Status = string(provider.Failed)
	charge.FailureCode, charge.FailureMessage = db.OrNil(p.Name()), db.OrNil(p.Message)
	return charge
}

// commit settles the charge, with its event and an answer. The charge may stay pending, when its
// payer has to act.
func (e *chargeEnd) commit(
	status idemkeys.Status, a idemkeys.Answer, charge Charge,
) *idemkeys.Commit {
	kind := settledEvents[provider.Status(charge.Status)]
	id := eventID(kind, charge.ID, e.op.ID)
	return &idemkeys.Commit{Next: idemkeys.Finished, Status: status, Answer: &a, Write: settlement{
		store: e.store, charge: charge, intentID: e.intentID, eventID: id, eventType: kind,
		eventPayload: renderEvent(id, kind, e.op.Now(), charge, charge.Livemode, firstEvent),
	}}
}

// settledEvents has the type of event of a charge that is settled with a status.
var settledEvents = map[provider.Status]string{
	provider.Pending: outbox.ChargePending, provider.Succeeded: outbox.ChargeSucceeded,
	provider.Failed: outbox.ChargeFailed,
}

// settlement writes the rows of commit 2 of a charge, of either flow: the charge and its event,
// with the stored answer.
type settlement struct {
	store        *Store
	charge       Charge
	intentID     string
	eventID      string
	eventType    string
	eventPayload []byte
}

// settlementRow is one row of commit 2.
type settlementRow struct {
	settlement
	fence   idemkeys.Fence
	status  idemkeys.Status
	answer  idemkeys.Answer
	headers []byte
	log     idemkeys.LogEntry

	outcome, nextAction, details string // JSON, or empty
}

// Execute implements [idemkeys.Write]: the stored answer, the settled charge and its event, in one
// statement, which others may share.
func (w settlement) Execute(
	ctx context.Context, f idemkeys.Fence, c *idemkeys.Commit,
) (bool, error) {
	row := settlementRow{settlement: w, fence: f, status: c.Status, answer: *c.Answer}
	var err error
	if row.headers, err = json.Marshal(c.Answer.Header); err != nil {
		return false, err
	}
	if row.outcome, err = jsonOf(w.charge.Outcome); err != nil {
		return false, err
	}
	if row.nextAction, err = jsonOf(w.charge.NextAction); err != nil {
		return false, err
	}
	details, err := storedDetails(w.charge.Known)
	if err != nil {
		return false, err
	}
	row.details = db.OrEmpty(details)
	if c.Log != nil {
		row.log = *c.Log
	}
	_, won, err := w.store.settlements.Do(ctx, row)
	return won, w.store.whoseCharge(ctx, w.charge.ID, w.charge.Provider.ID, err)
}

// whoseCharge is the error of storing a charge; if another has its id at the provider, it names
// both.
func (s *Store) whoseCharge(ctx context.Context, id string, providerID *string, err error) error {
	if !db.Violates(err, "charges_at_provider") || providerID == nil {
		return err
	}
	other, readErr := db.Read(ctx, s.pool, s.queries.ChargeByProviderID, providerID)
	return duplicateProviderID("charge", *providerID, other.ID, id, readErr, err)
}

// duplicateProviderID is the error of an object that cannot be stored, since another already has
// its id at the provider: an operator has to know which. readErr is what reading that other came
// to, and cause what storing did.
func duplicateProviderID(noun, providerID, other, id string, readErr, cause error) error {
	switch {
	case readErr == nil:
		return db.Final(fmt.Errorf(
			"the provider's %s %s is that of %s, and was given for %s as well",
			noun, providerID, other, id,
		))
	case errors.Is(readErr, db.ErrUnavailable):
		return readErr // the commit is tried again, and this with it
	}
	return cause
}

// jsonOf encodes v; it returns "" for nil.
func jsonOf[T any](v *T) (string, error) {
	if v == nil {
		return "", nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// writeSettlements is commit 2 for a batch of settlements.
func (s *Store) writeSettlements(
	ctx context.Context, rows []settlementRow,
) (map[string]struct{}, error) {
	p := db.ChargeSettleParams{KeyTtl: s.keyTTL}
	for _, r := range rows {
		p.AccountIds = append(p.AccountIds, r.fence.AccountID)
		p.Keys = append(p.Keys, r.fence.Key)
		p.OperationIds = append(p.OperationIds, r.fence.OperationID)
		p.LeaseTokens = append(p.LeaseTokens, r.fence.LeaseToken)
		p.RecoveryPoints = append(p.RecoveryPoints, string(r.fence.Point))
		p.KeyStatuses = append(p.KeyStatuses, string(r.status))
		p.ResponseCodes = append(p.ResponseCodes, int16(r.answer.Code)) //nolint:gosec // at most 599
		p.ResponseHeaders = append(p.ResponseHeaders, r.headers)
		p.ResponseBodies = append(p.ResponseBodies, r.answer.Body)
		p.ChargeIds = append(p.ChargeIds, r.charge.ID)
		p.Statuses = append(p.Statuses, r.charge.Status)
		p.AmountsCaptured = append(p.AmountsCaptured, r.charge.AmountCaptured)
		p.Captured = append(p.Captured, r.charge.Captured)
		p.Disputed = append(p.Disputed, r.charge.Disputed)
		p.FailureCodes = append(p.FailureCodes, db.OrEmpty(r.charge.FailureCode))
		p.FailureMessages = append(p.FailureMessages, db.OrEmpty(r.charge.FailureMessage))
		p.Outcomes = append(p.Outcomes, r.outcome)
		p.ProviderIds = append(p.ProviderIds, db.OrEmpty(r.charge.Provider.ID))
		p.EventIds = append(p.EventIds, r.eventID)
		p.EventTypes = append(p.EventTypes, r.eventType)
		p.EventPayloads = append(p.EventPayloads, r.eventPayload)
		p.IntentIds = append(p.IntentIds, r.intentID)
		p.NextActions = append(p.NextActions, r.nextAction)
		p.Details = append(p.Details, r.details)
		p.LogEvents = append(p.LogEvents, r.log.Event)
		p.LogActors = append(p.LogActors, r.log.Actor)
		p.LogDetails = append(p.LogDetails, r.log.Detail)
	}
	ids, err := commitRows(ctx, s, len(rows), s.queries.ChargeSettle, p)
	if err != nil {
		return nil, err
	}
	won := make(map[string]struct{}, len(ids))
	for _, id := range ids {
		won[id] = struct{}{}
	}
	return won, nil
}

// An operator's decision, or an event of the provider.

// resolve checks an operator's decision on a charge at the provider. A success must exist there as
// requested, under the id that was given; a failure must not be contradicted by a success there. A
// decision that cannot be checked is refused.
func (k chargeKind) resolve(
	ctx context.Context, op *idemkeys.Operation, decision idemkeys.Resolution,
) (*idemkeys.Commit, error) {
	var r provider.ChargeRequest
	if err := json.Unmarshal(op.Params, &r); err != nil {
		return nil, fmt.Errorf("frozen parameters cannot be read: %w", err)
	}
	end := &chargeEnd{store: k.store, op: op, request: &r}
	if decision.Succeeded {
		return k.resolveSucceeded(ctx, end, decision.ProviderID)
	}
	clocks := k.cfg.Clocks.read(ctx, op)
	l := clocks.window(op, r.ProviderTime, k.cfg.RunLimit)
	l.Tags = r.Tags
	hits, err := k.provider.FindCharge(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("the provider could not be asked: %w", err)
	}
	for _, hit := range hits {
		if hit.Status != provider.Failed {
			return nil, fmt.Errorf(
				"the provider has the charge %s of this operation, %s", hit.ID, hit.Status,
			)
		}
	}
	if len(hits) > 0 {
		return end.settled(&hits[0]), nil
	}
	if !clocks.known {
		return nil, errors.New(
			"the provider did not tell its time, so it is not known where to look for the charge",
		)
	}
	return end.neverMade(), nil
}

func (k chargeKind) resolveSucceeded(
	ctx context.Context, end *chargeEnd, id string,
) (*idemkeys.Commit, error) {
	if id == "" {
		return nil, errors.New("the provider's id of the charge is needed")
	}
	got, err := k.provider.GetCharge(ctx, id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the provider could not be asked: %w", err)
	case got == nil:
		return nil, fmt.Errorf("the provider has no charge %s", id)
	}
	return end.settledBy(got)
}

// settle ends the operation by its charge.
func (k chargeKind) settle(
	_ context.Context, op *idemkeys.Operation, what providerObject,
) (*idemkeys.Commit, error) {
	r, err := readFrozen[provider.ChargeRequest](op.Params)
	switch {
	case err != nil:
		return nil, err
	case what.charge == nil:
		return nil, errOtherObject
	}
	end := &chargeEnd{store: k.store, op: op, request: r}
	return end.settledBy(what.charge)
}

// settledBy checks that a charge succeeded and is what was requested, and returns its commit.
func (e *chargeEnd) settledBy(got *provider.Charge) (*idemkeys.Commit, error) {
	if got.Status != provider.Succeeded {
		return nil, fmt.Errorf("the provider's charge %s is %s", got.ID, got.Status)
	}
	if err := matchesCharge(got, e.request); err != nil {
		return nil, err
	}
	return e.settled(got), nil
}
