package charges

import (
	"context"
	"encoding/json"
	"fmt"
	"net/mail"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
	"paidonce/provider"
)

// KindCreate is the kind of operation that makes a charge in one call. Names of kinds are stored
// with each operation.
const KindCreate = "charge.create"

// The parameters.

// Limits of the parameters, Stripe's where it has one.
const (
	AmountMin           = 1
	MetadataPairsMax    = 50 - metadataOwn
	MetadataKeyMax      = 40  // characters
	MetadataValueMax    = 500 // characters
	DescriptionMax      = 1000
	DescriptorMin       = 5
	SuffixMax           = 22 // what card networks print, a descriptor's as well
	EmailMax            = 254
	ProviderIDMax       = 255
	metadataReservedFor = "paidonce_" // our own names at the provider
	metadataOwn         = 5           // pairs: two tags, the claim, two about the reference
)

// Params are a client's parameters. Empty strings and nil mean absent.
type Params struct {
	Amount                    int64  // minor units, AmountMin to what its currency allows
	Currency                  string // ISO 4217, lower case
	Customer                  string // the provider's customer
	Source                    string // a provider token, or a card of Customer
	Capture                   bool   // false: authorise only
	Description               string
	Metadata                  map[string]string
	StatementDescriptorSuffix string
	StatementDescriptor       string
	Shipping                  *provider.Shipping // nil: none
	ReceiptEmail              string
	// Only for charges through payment intents; OffSession nil: not said.
	ReturnURL     string
	OffSession    *bool
	Reference     string // what is paid for; see reference.go
	ReferenceFrom string // the key of metadata that Reference was taken from, if any
	DuplicateOf   string // the charge beside which this one is meant
	WithRefunds   bool   // the answer shows the charge's refunds
}

var (
	providerToken = regexp.MustCompile(`^[a-z]+_[A-Za-z0-9_]+$`)
	cardDigits    = regexp.MustCompile(`^[0-9 -]{12,24}$`)
	// Card networks print a narrow alphabet; Stripe refuses these six.
	suffixForbidden = `<>\'"*`
)

// Validate checks everything that can be known without asking the provider. The first fault is
// returned as a [*problem.Error].
func (p Params) Validate() error {
	for _, check := range []func() *problem.Error{
		p.checkAmount, p.checkPayer, p.checkTexts, p.checkDescriptors, p.checkShipping,
		p.checkReturnURL, p.checkMetadata, p.checkGivenReference,
	} {
		if e := check(); e != nil {
			return e
		}
	}
	return nil
}

func (p Params) checkAmount() *problem.Error {
	switch {
	case p.Amount < AmountMin:
		return problem.ParameterInteger.Of(
			"amount", "amount must be at least %d, in minor units.", AmountMin,
		)
	case p.Amount > AmountMost:
		return amountTooLarge(AmountMost)
	}
	if _, ok := currencies[p.Currency]; !ok {
		return problem.CurrencyInvalid.Of(
			"currency", "currency must be the code of an ISO 4217 currency, such as usd.",
		)
	}
	if most := amountMax(p.Currency); p.Amount > most {
		return amountTooLarge(most)
	}
	return nil
}

func amountTooLarge(most int64) *problem.Error {
	return problem.AmountTooLarge.Of("amount", "amount must be at most %d, in minor units.", most)
}

// checkPart checks an amount of a charge, of which 0 means all. Whether it is more than there is,
// the charge decides.
func checkPart(amount int64, all string) error {
	switch {
	case amount < 0:
		return problem.ParameterInteger.Of(
			"amount", "amount must be at least %d, in minor units; leave it out to %s.", AmountMin,
			all,
		)
	case amount > AmountMost:
		return amountTooLarge(AmountMost)
	}
	return nil
}

func (p Params) checkPayer() *problem.Error {
	if p.Customer == "" && p.Source == "" {
		return problem.ParameterMissing.Of("source", "source, customer or both are required.")
	}
	if e := checkProviderID("customer", p.Customer); e != nil {
		return e
	}
	return checkProviderID("source", p.Source)
}

// checkProviderID checks a parameter that is an id of the provider, or empty.
func checkProviderID(name, v string) *problem.Error {
	switch {
	case v == "":
	case cardDigits.MatchString(v):
		return problem.ParameterInvalid.Of(
			name,
			"%s must be a token of the payment provider; card numbers are refused and not stored.",
			name,
		)
	case len(v) > ProviderIDMax || !providerToken.MatchString(v):
		return problem.ParameterInvalid.Of(
			name, "%s must be an id of the payment provider, such as tok_visa or cus_42.", name,
		)
	}
	return nil
}

func (p Params) checkTexts() *problem.Error {
	if utf8.RuneCountInString(p.Description) > DescriptionMax {
		return problem.ParameterTooLong.Of(
			"description", "description may have at most %d characters.", DescriptionMax,
		)
	}
	if s := p.ReceiptEmail; s != "" {
		if a, err := mail.ParseAddress(s); err != nil || a.Address != s || len(s) > EmailMax ||
			strings.ContainsFunc(s, unprintable) {
			return problem.EmailInvalid.Of(
				"receipt_email", "receipt_email must be an e-mail address.",
			)
		}
	}
	return nil
}

func (p Params) checkMetadata() *problem.Error {
	if len(p.Metadata) > MetadataPairsMax {
		return problem.ParameterInvalid.Of("metadata",
			"metadata may have at most %d pairs: the payment provider keeps %d, and %d are Paidonce's own.",
			MetadataPairsMax, MetadataPairsMax+metadataOwn, metadataOwn)
	}
	for k, v := range p.Metadata {
		param := "metadata[" + k + "]"
		switch {
		case k == "" || utf8.RuneCountInString(k) > MetadataKeyMax || strings.ContainsAny(k, "[]"):
			return problem.ParameterInvalid.Of("metadata",
				"The keys of metadata must have 1 to %d characters, and no square brackets.", MetadataKeyMax)
		case strings.HasPrefix(k, metadataReservedFor):
			return problem.ParameterInvalid.Of(
				param, "Metadata keys that begin with %s are reserved.", metadataReservedFor,
			)
		case utf8.RuneCountInString(v) > MetadataValueMax:
			return problem.ParameterTooLong.Of(
				param, "The values of metadata may have at most %d characters.", MetadataValueMax,
			)
		}
	}
	return nil
}

// unprintable reports whether an address or a reference must not contain r: separators of lines,
// and controls of direction, make one look like another.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// The claim.

// Create makes a charge once for the request's key, or returns the answer that the key already has.
// Errors: those of [idemkeys.Runner.Do].
func (s *Service) Create(
	ctx context.Context, r idemkeys.Request, p Params,
) (idemkeys.Result, error) {
	res, err := s.runner.Do(ctx, r, s.claim(&p))
	return res, s.store.orReplaced(ctx, err)
}

// claimRow is one row of commit 1.
type claimRow struct {
	op       *idemkeys.Operation
	apiKeyID string
	version  int16
	hash     []byte
	request  *provider.ChargeRequest
	metadata string // JSON
	shipping string // JSON; empty: none
	ofIntent bool   // of a payment intent that a client makes
}

// claim is commit 1 of a charge with the parameters p: the key's row and the pending charge.
func (s *Service) claim(p *Params) idemkeys.Claim {
	return func(ctx context.Context, r idemkeys.Request, op *idemkeys.Operation) (
		idemkeys.Claimed, error,
	) {
		op.Kind, op.ResourceID = KindCreate, db.NewID("ch")
		if s.cfg.Intents {
			op.Kind = KindIntent
		}
		if e := s.checkBySettings(p); e != nil {
			return claimResult(s.store.refuseUnlessTaken(ctx, s.store.pool, r, e))
		}
		request := s.chargeRequest(r, op, p)
		freeze := any(request)
		if s.cfg.Intents {
			freeze = freezeIntent(*request, s.cfg.Installation)
		}
		row, err := newClaimRow(r, op, request, freeze)
		if err != nil {
			return idemkeys.Lost, err
		}
		return s.claimFor(ctx, r, row)
	}
}

// claimFor writes the claim of an operation, which knows afterwards when it was claimed.
func (s *Service) claimFor(
	ctx context.Context, r idemkeys.Request, row *claimRow,
) (idemkeys.Claimed, error) {
	at, got, err := s.claimRow(ctx, r, row)
	if got != idemkeys.Won || err != nil {
		return got, err
	}
	row.op.SetClaimed(at)
	row.op.Params = withClaimedAt(row.op.Params, at)
	s.cfg.Clocks.compare(row.op.Now())
	return idemkeys.Won, nil
}

// chargeRequest is what the parameters ask of the provider. It is frozen with the claim.
func (s *Service) chargeRequest(
	r idemkeys.Request, op *idemkeys.Operation, p *Params,
) *provider.ChargeRequest {
	request := &provider.ChargeRequest{
		Account:        s.store.own.get(),
		Sender:         s.store.own.senderMark(),
		IdempotencyKey: derivedKey(s.cfg.Installation, op.ID, "charge"),
		Tags:           provider.Tags{Operation: op.ID, Installation: s.cfg.Installation},
		Livemode:       s.cfg.Livemode,
		Amount:         p.Amount, Currency: p.Currency, Customer: p.Customer, Source: p.Source,
		Capture: p.Capture, Description: p.Description, ReceiptEmail: p.ReceiptEmail,
		StatementDescriptorSuffix: p.StatementDescriptorSuffix, Metadata: p.Metadata,
		StatementDescriptor: p.StatementDescriptor, Shipping: p.Shipping,
		ReturnURL: p.ReturnURL, OffSession: p.OffSession != nil && *p.OffSession,
		Claim:     frozenNote(r, op.Kind, op.ResourceID, p.Capture),
		Reference: p.Reference, DuplicateOf: p.DuplicateOf,
		WithRefunds: p.WithRefunds,
	}
	request.ProviderTime = s.cfg.Clocks.seconds()
	// frozen with the rest, so that no attempt of any instance makes the provider mail one, too
	if s.cfg.OwnReceipts {
		request.ReceiptEmail, request.OwnReceiptEmail = "", p.ReceiptEmail
	}
	return request
}

// newClaimRow is the row of commit 1 for an operation of which this is frozen.
func newClaimRow(
	r idemkeys.Request, op *idemkeys.Operation, request *provider.ChargeRequest, freeze any,
) (row *claimRow, err error) {
	row = &claimRow{op: op, apiKeyID: r.APIKeyID, request: request, metadata: "{}"}
	row.version, row.hash = r.Fingerprint.Current()
	if op.Params, err = json.Marshal(freeze); err != nil {
		return row, err
	}
	if row.shipping, err = jsonOf(request.Shipping); err != nil || len(request.Metadata) == 0 {
		return row, err
	}
	metadata, err := json.Marshal(request.Metadata)
	row.metadata = string(metadata)
	return row, err
}

// checkBySettings checks what depends on settings of the server or the account, which may not be
// those of the key's first request: a taken key comes before these refusals.
func (s *Service) checkBySettings(p *Params) *problem.Error {
	if e := p.checkFlow(s.cfg.Intents); e != nil {
		return e
	}
	return p.checkReference()
}

// claimRow writes one claim, in a batch if it has company.
func (s *Service) claimRow(
	ctx context.Context, r idemkeys.Request, row *claimRow,
) (time.Time, idemkeys.Claimed, error) {
	if row.ofIntent || row.request.DuplicateOf != "" {
		return s.claimAlone(ctx, r, row)
	}
	at, won, err := s.claims.Do(ctx, row)
	switch {
	case won:
		return at, idemkeys.Won, err
	case row.request.Reference == "", err != nil && !db.Violates(err, "charges_one_live_reference"):
		return at, idemkeys.Lost, err
	}
	got, err := s.store.whyNotClaimed(ctx, r, row.request)
	return at, got, err
}

// withClaimedAt returns frozen parameters with the field that the statement of commit 1 adds.
func withClaimedAt(frozen []byte, at time.Time) []byte {
	return fmt.Appendf(unclosed(frozen), `,"claimed_at":%d}`, at.Unix())
}

// unclosed returns a JSON object without its closing brace. What is appended to it goes elsewhere.
func unclosed(object []byte) []byte { return object[: len(object)-1 : len(object)-1] }

// writeClaims is commit 1 for a batch of claims.
func (s *Store) writeClaims(ctx context.Context, rows []*claimRow) (map[string]time.Time, error) {
	rows = oneOfEachReference(rows)
	won, err := commitRows(ctx, s, len(rows), s.queries.ChargeClaim, s.claimParams(rows))
	if len(won) > 0 { // they were committed together
		s.recent.add(won[0].OperationID)
	}
	return claimedAt(won), err
}

// claimIn is commit 1 in a transaction of several statements. Once that is committed, and not
// before, a claim belongs to the recent ones.
func (s *Store) claimIn(
	ctx context.Context, tx db.DBTX, rows []*claimRow,
) (map[string]time.Time, error) {
	won, err := s.queries.ChargeClaim(ctx, tx, s.claimParams(rows))
	return claimedAt(won), err
}

func (s *Store) claimParams(rows []*claimRow) db.ChargeClaimParams {
	p := db.ChargeClaimParams{ProviderAccount: s.own.get()}
	for _, r := range rows {
		p.ApiKeyIds = append(p.ApiKeyIds, r.apiKeyID)
		p.AccountIds = append(p.AccountIds, r.op.AccountID)
		p.Keys = append(p.Keys, r.op.Key)
		p.OperationIds = append(p.OperationIds, r.op.ID)
		p.Kinds = append(p.Kinds, r.op.Kind)
		p.HashVersions = append(p.HashVersions, r.version)
		p.RequestHashes = append(p.RequestHashes, r.hash)
		p.RequestIds = append(p.RequestIds, r.op.RequestID)
		// the statement adds claimed_at and the brace, as withClaimedAt does
		p.Params = append(p.Params, unclosed(r.op.Params))
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
		p.Descriptors = append(p.Descriptors, r.request.StatementDescriptor)
		p.Shippings = append(p.Shippings, r.shipping)
		p.Livemodes = append(p.Livemodes, r.request.Livemode)
		p.MerchantReferences = append(p.MerchantReferences, r.request.Reference)
		p.DuplicatesOf = append(p.DuplicatesOf, r.request.DuplicateOf)
	}
	return p
}

// claimedAt returns when which operation was claimed.
func claimedAt(won []db.ChargeClaimRow) map[string]time.Time {
	claimed := make(map[string]time.Time, len(won))
	for _, w := range won {
		claimed[w.OperationID] = w.CreatedAt
	}
	return claimed
}
