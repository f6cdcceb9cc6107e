package charges

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/provider"
)

// Store writes and reads charges. Its two committers share transactions among whoever commits at the same moment. Safe for concurrent use.
type Store struct {
	pool    db.Pool
	hot     db.DBTX // what the committers commit on
	queries *db.Queries
	keyTTL  time.Duration
	own     own
	claims  db.Committer[claimRow, time.Time]
	settles db.Committer[settleRow, struct{}]
	recent  recentClaims
}

// claimsMax is how many claims may wait for their turn: enough for thousands of callers who come at the same moment, and written in a second or two, while those who
// sent them still listen. Settlements are never refused: their money has moved.
const claimsMax = 5 * 1024

// NewStore returns a store that keeps finished keys for keyTTL.
func NewStore(pool db.Pool, keyTTL time.Duration) *Store {
	s := &Store{pool: pool, hot: pool, queries: db.New(), keyTTL: keyTTL}
	s.claims.Write, s.claims.ID = s.writeClaims, func(r claimRow) string { return r.op.ID }
	s.claims.QueueMax = claimsMax
	s.settles.Write, s.settles.ID = s.writeSettles, func(r settleRow) string { return r.fence.OperationID }
	return s
}

// CommitStats counts what the two committers have done: commit 1 and commit 2 of charges.
func (s *Store) CommitStats() (claims, settles db.CommitterStats) {
	return s.claims.Stats(), s.settles.Stats()
}

// CommitOn lets the two commits of a charge use connections of their own. Call it before the store is used.
func (s *Store) CommitOn(hot db.DBTX) { s.hot = hot }

// claimRow is one row of commit 1.
type claimRow struct {
	op       idemkeys.Operation
	asked    time.Time // this machine's time before the claim
	apiKeyID string
	version  int16
	hash     []byte
	request  provider.ChargeRequest
	metadata string // JSON
}

// NewService returns the service of charges over its engine.
func NewService(s *Store, e *idemkeys.Engine, cfg Config) *Service {
	s.claims.Late = func(r claimRow, claimedAt time.Time) {
		e.Abandon(r.op.Leased(claimedAt, r.asked), "claimed after the caller had given up")
	}
	return &Service{store: s, engine: e, cfg: cfg}
}

// claim is commit 1 of a charge with the parameters p: the key's row and the pending charge.
func (s *Service) claim(p Params) idemkeys.Claim {
	return func(ctx context.Context, r idemkeys.Request, operationID, leaseToken string) (idemkeys.Operation, bool, error) {
		kind, id := KindCreate, db.NewID("ch")
		if s.cfg.Intents {
			kind = KindIntent
		}
		request := provider.ChargeRequest{
			Account:        s.store.own.account(),
			Sender:         s.store.own.mark(),
			IdempotencyKey: derivedKey(s.cfg.Installation, operationID, "charge"),
			Tags:           provider.Tags{Operation: operationID, Installation: s.cfg.Installation},
			Livemode:       s.cfg.Livemode,
			Amount:         p.Amount, Currency: p.Currency, Customer: p.Customer, Source: p.Source, Capture: p.Capture,
			Description: p.Description, ReceiptEmail: p.ReceiptEmail, StatementDescriptorSuffix: p.StatementDescriptorSuffix, Metadata: p.Metadata,
			Claim: frozenNote(r, kind, id, p.Capture),
		}
		request.ProviderTime = s.cfg.Clocks.seconds()
		if s.cfg.OwnReceipts { // frozen with the rest, so that no attempt of any instance makes the provider mail one, too
			request.ReceiptEmail, request.OwnReceiptEmail = "", p.ReceiptEmail
		}
		row := claimRow{asked: time.Now(), apiKeyID: r.APIKeyID, request: request, metadata: "{}"} //tidy:clock the run counts from before its claim
		row.version, row.hash = r.Fingerprint.Current()
		freeze := any(request)
		if s.cfg.Intents {
			freeze = freezeIntent(request, s.cfg.Installation)
		}
		frozen, err := json.Marshal(freeze)
		if err != nil {
			return idemkeys.Operation{}, false, err
		}
		if len(p.Metadata) > 0 {
			metadata, err := json.Marshal(p.Metadata)
			if err != nil {
				return idemkeys.Operation{}, false, err
			}
			row.metadata = string(metadata)
		}
		row.op = idemkeys.Operation{
			AccountID: r.AccountID, Key: r.Key, ID: operationID, Kind: kind, Point: idemkeys.Started, Params: frozen,
			ResourceID: id, RequestID: r.RequestID, LeaseToken: leaseToken, Actor: "request " + r.RequestID, Attempts: 1, WindowOpen: true,
		}
		claimedAt, won, err := s.store.claims.Do(ctx, row)
		op := row.op.Leased(claimedAt, row.asked)
		op.Params = fmt.Appendf(frozen[:len(frozen)-1:len(frozen)-1], `,"claimed_at":%d}`, claimedAt.Unix())
		op.CreatedAt, op.FirstAttemptAt, op.LastAttemptAt, op.SentAt = claimedAt, claimedAt, claimedAt, claimedAt
		if won {
			s.cfg.Clocks.compare(op.Now())
		}
		return op, won, err
	}
}

// writeClaims is commit 1 for everybody who claims at this moment.
func (s *Store) writeClaims(ctx context.Context, rows []claimRow) (map[string]time.Time, error) {
	p := db.ChargeClaimParams{ProviderAccount: s.own.account()}
	for _, r := range rows {
		p.ApiKeyIds = append(p.ApiKeyIds, r.apiKeyID)
		p.AccountIds = append(p.AccountIds, r.op.AccountID)
		p.Keys = append(p.Keys, r.op.Key)
		p.OperationIds = append(p.OperationIds, r.op.ID)
		p.Kinds = append(p.Kinds, r.op.Kind)
		p.HashVersions = append(p.HashVersions, r.version)
		p.RequestHashes = append(p.RequestHashes, r.hash)
		p.RequestIds = append(p.RequestIds, r.op.RequestID)
		p.Params = append(p.Params, r.op.Params[:len(r.op.Params)-1]) // the statement adds claimed_at and the brace
		p.RecoveryPoints = append(p.RecoveryPoints, string(r.op.Point))
		p.LeaseTokens = append(p.LeaseTokens, r.op.LeaseToken)
		p.ChargeIds = append(p.ChargeIds, r.op.ResourceID)
		p.Amounts = append(p.Amounts, r.request.Amount)
		p.Currencies = append(p.Currencies, r.request.Currency)
		p.Captures = append(p.Captures, r.request.Capture)
		p.Customers = append(p.Customers, r.request.Customer)
		p.Descriptions = append(p.Descriptions, r.request.Description)
		p.Metadata = append(p.Metadata, r.metadata)
		p.ReceiptEmails = append(p.ReceiptEmails, receiptEmail(r.request))
		p.OwnReceipts = append(p.OwnReceipts, r.request.OwnReceiptEmail != "")
		p.Suffixes = append(p.Suffixes, r.request.StatementDescriptorSuffix)
		p.Livemodes = append(p.Livemodes, r.request.Livemode)
	}
	won, err := s.queries.ChargeClaim(ctx, s.hot, p)
	if db.NotConnected(err) {
		won, err = s.queries.ChargeClaim(ctx, s.pool, p)
	}
	if err != nil {
		return nil, err
	}
	claimed := make(map[string]time.Time, len(won))
	for _, w := range won {
		claimed[w.OperationID] = w.CreatedAt
	}
	if len(won) > 0 { // they were committed as one
		s.recent.add(won[0].OperationID)
	}
	return claimed, nil
}

// settlement is the charge's half of commit 2.
type settlement struct {
	store        *Store
	charge       Charge
	eventID      string
	eventType    string
	eventPayload []byte
}

type settleRow struct {
	settlement
	fence   idemkeys.Fence
	status  idemkeys.Status
	answer  idemkeys.Answer
	headers []byte
	log     idemkeys.LogEntry

	outcome, nextAction string // JSON, or empty
}

// Execute implements [idemkeys.Write]: the stored answer, the settled charge and its event, in one statement, in company.
func (w settlement) Execute(ctx context.Context, f idemkeys.Fence, c idemkeys.Commit) (bool, error) {
	row := settleRow{settlement: w, fence: f, status: c.Status, answer: *c.Answer}
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
	if c.Log != nil {
		row.log = *c.Log
	}
	_, won, err := w.store.settles.Do(ctx, row)
	if db.Violates(err, "charges_provider_id") {
		err = w.store.givenTwice(ctx, w.charge, err)
	}
	return won, err
}

// givenTwice says whose the provider's id of a charge is already: that is what a person has to know.
func (s *Store) givenTwice(ctx context.Context, charge Charge, cause error) error {
	err := db.Retry(ctx, func(ctx context.Context) error {
		other, err := s.queries.ChargeByProviderID(ctx, s.pool, charge.Provider.ID)
		if err == nil {
			cause = db.Final(fmt.Errorf("the provider's charge %s is that of %s, and was given for %s as well", *charge.Provider.ID, other.ID, charge.ID))
		}
		return err
	})
	if errors.Is(err, db.ErrUnavailable) {
		return err // the commit is tried again, and this with it
	}
	return cause
}

// jsonOf is empty for nil.
func jsonOf[T any](v *T) (string, error) {
	if v == nil {
		return "", nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// writeSettles is commit 2 for everybody who settles at this moment.
func (s *Store) writeSettles(ctx context.Context, rows []settleRow) (map[string]struct{}, error) {
	p := db.ChargeSettleParams{KeyTtl: s.keyTTL}
	for _, r := range rows {
		p.AccountIds = append(p.AccountIds, r.fence.AccountID)
		p.Keys = append(p.Keys, r.fence.Key)
		p.OperationIds = append(p.OperationIds, r.fence.OperationID)
		p.LeaseTokens = append(p.LeaseTokens, r.fence.LeaseToken)
		p.RecoveryPoints = append(p.RecoveryPoints, string(r.fence.Point))
		p.KeyStatuses = append(p.KeyStatuses, string(r.status))
		p.ResponseCodes = append(p.ResponseCodes, int16(r.answer.Code)) //nolint:gosec // an HTTP status
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
		p.IntentIds = append(p.IntentIds, r.charge.intentID)
		p.NextActions = append(p.NextActions, r.nextAction)
		p.LogEvents = append(p.LogEvents, r.log.Event)
		p.LogActors = append(p.LogActors, r.log.Actor)
		p.LogDetails = append(p.LogDetails, r.log.Detail)
	}
	ids, err := s.queries.ChargeSettle(ctx, s.hot, p)
	if db.NotConnected(err) {
		ids, err = s.queries.ChargeSettle(ctx, s.pool, p)
	}
	if err != nil {
		return nil, err
	}
	won := make(map[string]struct{}, len(ids))
	for _, id := range ids {
		won[id] = struct{}{}
	}
	return won, nil
}
