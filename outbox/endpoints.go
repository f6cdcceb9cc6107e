package outbox

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
)

const (
	// secretBytes is what Standard Webhooks recommends: 24 random bytes are 192 bits, and 32
	// characters of base64.
	secretBytes = 24
	// secretOverlap is how long a replaced secret still signs. A day is enough to deploy the new
	// one everywhere.
	secretOverlap = 24 * time.Hour
	// secretsKept is how many replaced secrets sign at most, so that frequent rotation does not
	// make headers grow without bound.
	secretsKept = 4
	// endpointsMax is how many endpoints an account can have. It bounds the deliveries that one
	// event can cause.
	endpointsMax = 50
	urlMax       = 2000 // bytes; common servers accept this much
	// descriptionMax is the longest description, in characters: a few sentences.
	descriptionMax = 500
)

// EndpointID matches the names that a client may give an endpoint. The rule for the first character
// excludes "." and "..", which clients and proxies remove from a path.
var EndpointID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// EndpointParams is everything that a client sets of an endpoint.
type EndpointParams struct {
	URL           string
	EnabledEvents []string // of [Types], or * for all
	Description   string
	Metadata      map[string]string // only of [Store.CreateEndpoint]
}

// Endpoint is where an account wants its events sent: WebhookEndpoint of openapi.yaml. Times are in
// Unix seconds.
type Endpoint struct {
	APIVersion  string  `json:"api_version"` // always [APIVersion]
	Application *string `json:"application"` // always nil: only Stripe's Connect has some
	Created     int64   `json:"created"`
	Description *string `json:"description"`
	// DisabledAt is since when nothing is sent; registering the endpoint again enables it.
	DisabledAt     *int64            `json:"disabled_at"`
	DisabledReason *string           `json:"disabled_reason"`
	EnabledEvents  []string          `json:"enabled_events"`
	ID             string            `json:"id"`
	Livemode       bool              `json:"livemode"`
	Metadata       map[string]string `json:"metadata"`
	Object         string            `json:"object"`
	// Secret is whsec_ and base64: what deliveries are signed with. The answer to an update has
	// none, nor has what a read-only API key sees.
	Secret string `json:"secret,omitempty"`
	Status string `json:"status"` // enabled or disabled
	URL    string `json:"url"`
}

// WithoutSecrets is the endpoint without what deliveries are signed with: whoever has that can make
// a receiver believe in an event.
func (e Endpoint) WithoutSecrets() Endpoint {
	e.Secret = ""
	return e
}

// APIVersion is the version of Stripe's API whose shapes all events have.
const APIVersion = "2023-10-16"

func (s *Store) endpointFrom(e db.WebhookEndpoint, secret string) (Endpoint, error) {
	endpoint := Endpoint{
		APIVersion: APIVersion, Livemode: s.livemode, Created: e.CreatedAt.Unix(), Description: db.OrNil(e.Description),
		EnabledEvents: e.EnabledEvents, ID: e.ID, Object: "webhook_endpoint",
		Secret: secret, Status: "enabled", URL: e.Url,
	}
	if e.DisabledAt != nil {
		at := e.DisabledAt.Unix()
		endpoint.Status, endpoint.DisabledAt, endpoint.DisabledReason = "disabled", &at, e.DisabledReason
	}
	return endpoint, json.Unmarshal(e.Metadata, &endpoint.Metadata)
}

// PutEndpoint registers an endpoint under the client's id, or replaces what was registered under
// it. Doing so again changes nothing, so no key is needed. A disabled endpoint is enabled, and what
// waited for it is sent. created reports whether it is new. The secret is in each answer, so that a
// client that lost the first one learns it too. Errors: [*problem.Error], or the database's.
func (s *Store) PutEndpoint(
	ctx context.Context, accountID, id string, p EndpointParams,
) (_ Endpoint, created bool, err error) {
	if p, err = s.checkEndpoint(ctx, id, p); err != nil {
		return Endpoint{}, false, err
	}
	secret, err := newSecret()
	if err != nil {
		return Endpoint{}, false, err
	}
	var stored db.EndpointGetRow
	err = db.Tx(ctx, s.pool, func(ctx context.Context, tx db.DBTX) error {
		if err := s.queries.EndpointsLock(ctx, tx, accountID); err != nil {
			return err
		}
		was, found, err := db.Found(s.queries.EndpointLock(ctx, tx, db.EndpointLockParams{
			AccountID: accountID, ID: id,
		}))
		if err == nil && !found {
			err = s.checkRoom(ctx, tx, accountID, "id")
		}
		if err != nil {
			return err
		}
		row, err := s.queries.EndpointPut(ctx, tx, db.EndpointPutParams{
			AccountID: accountID, ID: id, Url: p.URL, EnabledEvents: p.EnabledEvents,
			Description: p.Description, Metadata: []byte("{}"),
		})
		if err != nil {
			return err
		}
		created = row.Fresh
		switch {
		case created:
			err = s.queries.SecretAdd(ctx, tx, db.SecretAddParams{
				Endpoint: row.WebhookEndpoint.Number, Secret: secret,
			})
		case was.DisabledAt != nil, was.Url != p.URL && was.Number != 0:
			_, err = s.queries.EndpointWake(ctx, tx, row.WebhookEndpoint.Number)
		}
		if err != nil {
			return err
		}
		// It is read in this transaction: after the commit it may be deleted at any time.
		stored, err = s.queries.EndpointGet(ctx, tx, db.EndpointGetParams{
			AccountID: accountID, ID: id,
		})
		return err
	})
	if errors.Is(err, db.ErrCommitUnknown) { // putting it again is harmless
		err = errors.Join(db.ErrUnavailable, err)
	}
	if err != nil {
		return Endpoint{}, false, err
	}
	e, err := s.endpointFrom(stored.WebhookEndpoint, stored.Secret)
	return e, created, err
}

// checkRoom refuses one endpoint more than an account can have. Whoever asks holds EndpointsLock.
// param is what the request calls it.
func (s *Store) checkRoom(ctx context.Context, tx db.DBTX, accountID, param string) error {
	n, err := s.queries.EndpointCount(ctx, tx, accountID)
	if err == nil && n >= endpointsMax {
		err = db.Final(problem.TooManyEndpoints.Of(param,
			"an account can have %d endpoints; delete one first.", endpointsMax))
	}
	return err
}

// checkEndpoint checks and normalises what does not depend on the account.
func (s *Store) checkEndpoint(
	ctx context.Context, id string, p EndpointParams,
) (EndpointParams, error) {
	if !EndpointID.MatchString(id) {
		return p, problem.ParameterInvalid.Of("id",
			"an endpoint's id has 1 to 64 letters, digits, dots, dashes or underscores, and begins with a letter or a digit.")
	}
	if p.URL == "" {
		return p, problem.ParameterMissing.Of("url", "url is required: where to POST events.")
	}
	var err error
	if p.EnabledEvents, err = checkTypes(p.EnabledEvents); err != nil {
		return p, err
	}
	if err := checkDescription(p.Description); err != nil {
		return p, err
	}
	return p, s.checkAddress(ctx, p.URL)
}

// checkTypes returns types of events sorted, each once.
func checkTypes(types []string) ([]string, error) {
	if len(types) == 0 {
		return nil, problem.ParameterMissing.Of("enabled_events",
			`enabled_events is required: types of events, or ["*"] for all.`)
	}
	for _, t := range types {
		if t != "*" && !slices.Contains(Types, t) {
			return nil, problem.ParameterInvalid.Of("enabled_events",
				"enabled_events must be * or some of %s.", strings.Join(Types, ", "))
		}
	}
	if slices.Contains(types, "*") {
		return []string{"*"}, nil
	}
	return slices.Compact(slices.Sorted(slices.Values(types))), nil
}

func checkDescription(d string) error {
	if len([]rune(d)) > descriptionMax || strings.ContainsRune(d, 0) {
		return problem.ParameterTooLong.Of("description",
			"description must have at most %d characters, none of them NUL.", descriptionMax)
	}
	return nil
}

// checkAddress comes last of the checks, since it may look a name up.
func (s *Store) checkAddress(ctx context.Context, url string) error {
	if len(url) > urlMax {
		return problem.ParameterTooLong.Of("url", "url must have at most %d bytes.", urlMax)
	}
	if err := s.checkURL(ctx, url); err != nil {
		return problem.ParameterInvalid.Of("url", "url %s.", err)
	}
	return nil
}

// GetEndpoint returns an endpoint. Errors: [ErrNotFound], or the database's.
func (s *Store) GetEndpoint(ctx context.Context, accountID, id string) (Endpoint, error) {
	row, found, err := db.One(ctx, s.pool, s.queries.EndpointGet, db.EndpointGetParams{
		AccountID: accountID, ID: id,
	})
	if err == nil && !found {
		err = ErrNotFound
	}
	if err != nil {
		return Endpoint{}, err
	}
	return s.endpointFrom(row.WebhookEndpoint, row.Secret)
}

// ListEndpoints returns an account's endpoints, the newest first; they are few. Errors: the
// database's.
func (s *Store) ListEndpoints(ctx context.Context, accountID string) ([]Endpoint, error) {
	rows, err := db.Read(ctx, s.pool, s.queries.EndpointList, accountID)
	if err != nil {
		return nil, err
	}
	list := make([]Endpoint, 0, len(rows))
	for _, row := range rows {
		e, err := s.endpointFrom(row.WebhookEndpoint, row.Secret)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// DeleteEndpoint forgets an endpoint and what is queued for it. Errors: [ErrNotFound], or the
// database's.
func (s *Store) DeleteEndpoint(ctx context.Context, accountID, id string) error {
	return db.Tx(ctx, s.pool, func(ctx context.Context, tx db.DBTX) error {
		number, found, err := db.Found(s.queries.EndpointDelete(ctx, tx, db.EndpointDeleteParams{
			AccountID: accountID, ID: id,
		}))
		if err != nil {
			return err
		}
		if !found {
			return db.Final(ErrNotFound)
		}
		_, err = s.queries.DeliveriesDelete(ctx, tx, number)
		return err
	})
}

// RotateSecret gives an endpoint of the request's account a new secret. If the request has a key,
// that is done once for the key. The secret that it replaces signs as well for a day. The answer is
// the endpoint. Errors: [ErrNotFound], or those of [idemkeys.Runner.Local].
func (s *Store) RotateSecret(
	ctx context.Context, r idemkeys.Request, id string,
) (idemkeys.Result, error) {
	return s.runner.Local(ctx, r, "webhook_endpoint.rotate_secret", id, func(ctx context.Context, tx db.DBTX) (idemkeys.Answer, error) {
		e, err := s.rotateSecret(ctx, tx, r.AccountID, id)
		return answer(e), err
	})
}

// answer returns a 200 with an object of the API.
func answer(object any) idemkeys.Answer {
	return idemkeys.Answer{
		Code: http.StatusOK, Header: map[string]string{"Content-Type": "application/json"},
		Body: problem.Render(object),
	}
}

func (s *Store) rotateSecret(
	ctx context.Context, tx db.DBTX, accountID, id string,
) (Endpoint, error) {
	secret, err := newSecret()
	if err != nil {
		return Endpoint{}, err
	}
	e, found, err := db.Found(s.queries.EndpointLock(ctx, tx, db.EndpointLockParams{
		AccountID: accountID, ID: id,
	}))
	if err != nil {
		return Endpoint{}, err
	}
	if !found {
		return Endpoint{}, db.Final(ErrNotFound)
	}
	if err := s.queries.SecretRetire(ctx, tx,
		db.SecretRetireParams{Overlap: secretOverlap, Endpoint: e.Number}); err != nil {
		return Endpoint{}, err
	}
	if err := s.queries.SecretAdd(ctx, tx,
		db.SecretAddParams{Endpoint: e.Number, Secret: secret}); err != nil {
		return Endpoint{}, err
	}
	if err := s.queries.SecretForget(ctx, tx, db.SecretForgetParams{
		Endpoint: e.Number, Keep: secretsKept,
	}); err != nil {
		return Endpoint{}, err
	}
	return s.endpointFrom(e, secret)
}

func newSecret() (string, error) {
	b := make([]byte, secretBytes)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return "whsec_" + base64.StdEncoding.EncodeToString(b), nil
}
