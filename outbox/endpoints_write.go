package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strings"
	"unicode/utf8"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
)

// The bounds of metadata are those of Stripe.
const (
	metadataPairsMax = 50
	metadataKeyMax   = 40  // characters
	metadataValueMax = 500 // characters
)

// disabledByUpdate is why an endpoint is disabled that its account disabled.
const disabledByUpdate = "an update disabled it"

// EndpointChange is what an update changes. nil: it stays as it is.
type EndpointChange struct {
	URL           *string
	EnabledEvents []string
	Description   *string // "": none
	// ClearMetadata takes all pairs away. Then those of Metadata are added, and those whose text is
	// empty are taken away.
	ClearMetadata bool
	Metadata      map[string]string
	Disabled      *bool
}

// CreateEndpoint registers an endpoint under our own id. If the request has a key, that is done
// once for the key; without one, each request registers one. The answer is the endpoint. Errors:
// [*problem.Error], or those of [idemkeys.Runner.Local].
func (s *Store) CreateEndpoint(
	ctx context.Context, r idemkeys.Request, p EndpointParams,
) (idemkeys.Result, error) {
	id := db.NewID("we")
	secret, err := newSecret()
	if err != nil {
		return idemkeys.Result{}, err
	}
	// A name may lead elsewhere today than it did when the key was claimed. A replay does not
	// depend on that, so what the check found only counts once the key is known to be free.
	p, refused := s.checkEndpoint(ctx, id, p)
	metadata, errM := mergeMetadata(nil, EndpointChange{Metadata: p.Metadata})
	if refused == nil {
		refused = errM
	}
	res, err := s.runner.Local(ctx, r, "webhook_endpoint.create", id, func(ctx context.Context, tx db.DBTX) (idemkeys.Answer, error) {
		if refused != nil {
			return idemkeys.Answer{}, db.Final(refused)
		}
		e, err := s.createEndpoint(ctx, tx, db.EndpointPutParams{
			AccountID: r.AccountID, ID: id, Url: p.URL, EnabledEvents: p.EnabledEvents,
			Description: p.Description, Metadata: metadata,
		}, secret)
		a := answer(e)
		a.Code, a.Header["Location"] = http.StatusCreated, "/v1/webhook_endpoints/"+id
		return a, err
	})
	return res, wrongFirst(refused, err)
}

func (s *Store) createEndpoint(
	ctx context.Context, tx db.DBTX, p db.EndpointPutParams, secret string,
) (Endpoint, error) {
	if err := s.queries.EndpointsLock(ctx, tx, p.AccountID); err != nil {
		return Endpoint{}, err
	}
	if err := s.checkRoom(ctx, tx, p.AccountID, ""); err != nil {
		return Endpoint{}, err
	}
	row, err := s.queries.EndpointPut(ctx, tx, p)
	if err != nil {
		return Endpoint{}, err
	}
	if err := s.queries.SecretAdd(ctx, tx, db.SecretAddParams{
		Endpoint: row.WebhookEndpoint.Number, Secret: secret,
	}); err != nil {
		return Endpoint{}, err
	}
	return s.endpointFrom(row.WebhookEndpoint, secret)
}

// UpdateEndpoint changes an endpoint of the request's account. If the request has a key, that is
// done once for the key. What waits for an endpoint that is enabled again, or has another URL, is
// sent at once. The answer is the endpoint without its secret. Errors: [*problem.Error],
// [ErrNotFound], or those of [idemkeys.Runner.Local].
func (s *Store) UpdateEndpoint(
	ctx context.Context, r idemkeys.Request, id string, ch EndpointChange,
) (idemkeys.Result, error) {
	refused := s.checkChange(ctx, &ch) // as in CreateEndpoint
	res, err := s.runner.Local(ctx, r, "webhook_endpoint.update", id, func(ctx context.Context, tx db.DBTX) (idemkeys.Answer, error) {
		if refused != nil {
			return idemkeys.Answer{}, db.Final(refused)
		}
		e, err := s.updateEndpoint(ctx, tx, r.AccountID, id, ch)
		return answer(e), err
	})
	return res, wrongFirst(refused, err)
}

// wrongFirst tells of a wrong parameter before it tells that the key stands for another request, as
// everywhere.
func wrongFirst(refused, err error) error {
	if refused != nil && errors.Is(err, idemkeys.ErrReused) {
		return refused
	}
	return err
}

// checkChange checks and normalises what does not depend on the endpoint.
func (s *Store) checkChange(ctx context.Context, ch *EndpointChange) error {
	if ch.EnabledEvents != nil {
		events, err := checkTypes(ch.EnabledEvents)
		if err != nil {
			return err
		}
		ch.EnabledEvents = events
	}
	if ch.Description != nil {
		if err := checkDescription(*ch.Description); err != nil {
			return err
		}
	}
	if _, err := mergeMetadata(nil, *ch); err != nil {
		return err
	}
	if ch.URL != nil {
		return s.checkAddress(ctx, *ch.URL)
	}
	return nil
}

func (s *Store) updateEndpoint(
	ctx context.Context, tx db.DBTX, accountID, id string, ch EndpointChange,
) (Endpoint, error) {
	// Its lock is held to the end, so of two updates the second sees what the first one made.
	was, found, err := db.Found(s.queries.EndpointLock(ctx, tx, db.EndpointLockParams{
		AccountID: accountID, ID: id,
	}))
	if err != nil {
		return Endpoint{}, err
	}
	if !found {
		return Endpoint{}, db.Final(ErrNotFound)
	}
	metadata, err := mergeMetadata(was.Metadata, ch)
	if err != nil {
		return Endpoint{}, db.Final(err)
	}
	p := db.EndpointChangeParams{
		Number: was.Number, Url: was.Url, EnabledEvents: was.EnabledEvents,
		Description: was.Description, Metadata: metadata, Disabled: was.DisabledAt != nil,
		Reason: disabledByUpdate,
	}
	if ch.URL != nil {
		p.Url = *ch.URL
	}
	if ch.EnabledEvents != nil {
		p.EnabledEvents = ch.EnabledEvents
	}
	if ch.Description != nil {
		p.Description = *ch.Description
	}
	if ch.Disabled != nil {
		p.Disabled = *ch.Disabled
	}
	now, err := s.queries.EndpointChange(ctx, tx, p)
	if err != nil {
		return Endpoint{}, err
	}
	if !p.Disabled && (was.DisabledAt != nil || was.Url != p.Url) {
		if _, err := s.queries.EndpointWake(ctx, tx, was.Number); err != nil {
			return Endpoint{}, err
		}
	}
	return s.endpointFrom(now, "")
}

// mergeMetadata returns the pairs that an endpoint has after a change, in JSON. The bounds are
// those of the result.
func mergeMetadata(was []byte, ch EndpointChange) ([]byte, error) {
	pairs := map[string]string{}
	if was != nil && !ch.ClearMetadata {
		if err := json.Unmarshal(was, &pairs); err != nil {
			return nil, err
		}
	}
	for k, v := range ch.Metadata {
		switch {
		case k == "" || utf8.RuneCountInString(k) > metadataKeyMax || strings.ContainsAny(k, "[]"):
			return nil, problem.ParameterInvalid.Of("metadata",
				"The keys of metadata must have 1 to %d characters, and no square brackets.",
				metadataKeyMax)
		case utf8.RuneCountInString(v) > metadataValueMax:
			return nil, problem.ParameterTooLong.Of("metadata["+k+"]",
				"The values of metadata may have at most %d characters.", metadataValueMax)
		}
	}
	maps.Copy(pairs, ch.Metadata)
	maps.DeleteFunc(pairs, func(_, v string) bool { return v == "" })
	if len(pairs) > metadataPairsMax {
		return nil, problem.ParameterInvalid.Of("metadata", "metadata may have at most %d pairs.",
			metadataPairsMax)
	}
	return json.Marshal(pairs)
}
