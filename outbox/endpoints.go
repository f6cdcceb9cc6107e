package outbox

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
)

const (
	// secretBytes is what Standard Webhooks recommends: 24 random bytes are 192 bits, and 32 characters of base64.
	secretBytes = 24
	// secretOverlap is how long a replaced secret still signs: a day to bring the new one everywhere.
	secretOverlap = 24 * time.Hour
	// secretsKept is how many replaced secrets sign at most, so that rotating without end does not make headers without end.
	secretsKept = 4
	// endpointsMax bounds what one event of an account can cause.
	endpointsMax = 50
	urlMax       = 2000 // bytes; what common servers take
	// descriptionMax is in characters: a sentence or two.
	descriptionMax = 500
)

// EndpointID is what a client may name an endpoint. Its first character keeps "." and ".." out, which clients and proxies take out of a path.
var EndpointID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// EndpointParams is the whole of what a client says about an endpoint.
type EndpointParams struct {
	URL           string
	EnabledEvents []string // of [Types], or * for all
	Description   string
}

// Endpoint is where an account wants its events sent.
type Endpoint struct {
	ID             string
	URL            string
	EnabledEvents  []string
	Description    string
	Secret         string // whsec_ and base64: what deliveries are signed with
	Created        time.Time
	DisabledAt     *time.Time // nothing is sent from then on; registering it again enables it
	DisabledReason string
}

func endpointFrom(e db.WebhookEndpoint, secret string) Endpoint {
	return Endpoint{
		ID: e.ID, URL: e.Url, EnabledEvents: e.EnabledEvents, Description: e.Description, Secret: secret, Created: e.CreatedAt,
		DisabledAt: e.DisabledAt, DisabledReason: db.OrEmpty(e.DisabledReason),
	}
}

// PutEndpoint registers an endpoint under the client's id, or replaces what was registered under it: doing so again changes nothing, so no key is needed.
// A disabled one is enabled, and what waited for it is sent. created: it was not there before. The secret is in the answer each time, so that who lost the
// first answer learns it too. Errors: [*ParamError], or the database's.
func (s *Store) PutEndpoint(ctx context.Context, accountID, id string, p EndpointParams) (_ Endpoint, created bool, err error) {
	if p, err = s.checkEndpoint(ctx, id, p); err != nil {
		return Endpoint{}, false, err
	}
	secret, err := newSecret()
	if err != nil {
		return Endpoint{}, false, err
	}
	var shown db.EndpointGetRow
	err = db.Tx(ctx, s.pool, func(ctx context.Context, tx db.DBTX) error {
		if err := s.queries.EndpointsLock(ctx, tx, accountID); err != nil {
			return err
		}
		was, err := s.queries.EndpointLock(ctx, tx, db.EndpointLockParams{AccountID: accountID, ID: id})
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			if n, err := s.queries.EndpointCount(ctx, tx, accountID); err != nil {
				return err
			} else if n >= endpointsMax {
				return db.Final(invalid("id", "too_many_endpoints", "an account can have %d endpoints; delete one first.", endpointsMax))
			}
		case err != nil:
			return err
		}
		row, err := s.queries.EndpointPut(ctx, tx, db.EndpointPutParams{
			AccountID: accountID, ID: id, Url: p.URL, EnabledEvents: p.EnabledEvents, Description: p.Description,
		})
		if err != nil {
			return err
		}
		created = row.Fresh
		switch {
		case created:
			err = s.queries.SecretAdd(ctx, tx, db.SecretAddParams{Endpoint: row.WebhookEndpoint.Number, Secret: secret})
		case was.DisabledAt != nil, was.Url != p.URL && was.Number != 0:
			_, err = s.queries.EndpointWake(ctx, tx, row.WebhookEndpoint.Number)
		}
		if err != nil {
			return err
		}
		shown, err = s.queries.EndpointGet(ctx, tx, db.EndpointGetParams{AccountID: accountID, ID: id}) // here: after the commit somebody may delete it
		return err
	})
	if errors.Is(err, db.ErrCommitUnknown) { // doing it once more is harmless
		err = errors.Join(db.ErrUnavailable, err)
	}
	if err != nil {
		return Endpoint{}, false, err
	}
	return endpointFrom(shown.WebhookEndpoint, shown.Secret), created, nil
}

// checkEndpoint checks what can be checked without the account, and brings it into one form.
func (s *Store) checkEndpoint(ctx context.Context, id string, p EndpointParams) (EndpointParams, error) {
	if !EndpointID.MatchString(id) {
		return p, invalid("id", "parameter_invalid", "an endpoint's id has 1 to 64 letters, digits, dots, dashes or underscores, and begins with a letter or a digit.")
	}
	if p.URL == "" {
		return p, invalid("url", "parameter_missing", "url is required: where to POST events.")
	}
	if len(p.URL) > urlMax {
		return p, invalid("url", "parameter_invalid_string_too_long", "url must have at most %d bytes.", urlMax)
	}
	if len(p.EnabledEvents) == 0 {
		return p, invalid("enabled_events", "parameter_missing", `enabled_events is required: types of events, or ["*"] for all.`)
	}
	for _, t := range p.EnabledEvents {
		if t != "*" && !slices.Contains(Types, t) {
			return p, invalid("enabled_events", "parameter_invalid", "enabled_events must be * or some of %s.", strings.Join(Types, ", "))
		}
	}
	p.EnabledEvents = slices.Compact(slices.Sorted(slices.Values(p.EnabledEvents)))
	if slices.Contains(p.EnabledEvents, "*") {
		p.EnabledEvents = []string{"*"}
	}
	if len([]rune(p.Description)) > descriptionMax || strings.ContainsRune(p.Description, 0) {
		return p, invalid("description", "parameter_invalid_string_too_long", "description must have at most %d characters, none of them NUL.", descriptionMax)
	}
	if err := s.checkURL(ctx, p.URL); err != nil {
		return p, invalid("url", "parameter_invalid", "url %s.", err)
	}
	return p, nil
}

// GetEndpoint returns an endpoint. Errors: [ErrNotFound], or the database's.
func (s *Store) GetEndpoint(ctx context.Context, accountID, id string) (Endpoint, error) {
	row, err := ask(ctx, func(ctx context.Context) (db.EndpointGetRow, error) {
		return s.queries.EndpointGet(ctx, s.pool, db.EndpointGetParams{AccountID: accountID, ID: id})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Endpoint{}, ErrNotFound
	}
	return endpointFrom(row.WebhookEndpoint, row.Secret), err
}

// ListEndpoints returns an account's endpoints in the order of their ids; they are few. Errors: the database's.
func (s *Store) ListEndpoints(ctx context.Context, accountID string) ([]Endpoint, error) {
	rows, err := ask(ctx, func(ctx context.Context) ([]db.EndpointListRow, error) {
		return s.queries.EndpointList(ctx, s.pool, accountID)
	})
	if err != nil {
		return nil, err
	}
	list := make([]Endpoint, 0, len(rows))
	for _, row := range rows {
		list = append(list, endpointFrom(row.WebhookEndpoint, row.Secret))
	}
	return list, nil
}

// DeleteEndpoint forgets an endpoint and what is queued for it. Errors: [ErrNotFound], or the database's.
func (s *Store) DeleteEndpoint(ctx context.Context, accountID, id string) error {
	return db.Tx(ctx, s.pool, func(ctx context.Context, tx db.DBTX) error {
		number, err := s.queries.EndpointDelete(ctx, tx, db.EndpointDeleteParams{AccountID: accountID, ID: id})
		if errors.Is(err, pgx.ErrNoRows) {
			return db.Final(ErrNotFound)
		}
		if err != nil {
			return err
		}
		_, err = s.queries.DeliveriesDelete(ctx, tx, number)
		return err
	})
}

// RotateSecret gives an endpoint a new secret, in a transaction of the caller's; the one that it replaces signs as well for a day. Errors: [ErrNotFound], or the
// database's.
func (s *Store) RotateSecret(ctx context.Context, tx db.DBTX, accountID, id string) (Endpoint, error) {
	secret, err := newSecret()
	if err != nil {
		return Endpoint{}, err
	}
	e, err := s.queries.EndpointLock(ctx, tx, db.EndpointLockParams{AccountID: accountID, ID: id})
	if errors.Is(err, pgx.ErrNoRows) {
		return Endpoint{}, db.Final(ErrNotFound)
	}
	if err != nil {
		return Endpoint{}, err
	}
	if err := s.queries.SecretRetire(ctx, tx, db.SecretRetireParams{Overlap: secretOverlap, Endpoint: e.Number}); err != nil {
		return Endpoint{}, err
	}
	if err := s.queries.SecretAdd(ctx, tx, db.SecretAddParams{Endpoint: e.Number, Secret: secret}); err != nil {
		return Endpoint{}, err
	}
	return endpointFrom(e, secret), s.queries.SecretForget(ctx, tx, db.SecretForgetParams{Endpoint: e.Number, Keep: secretsKept})
}

func newSecret() (string, error) {
	b := make([]byte, secretBytes)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return "whsec_" + base64.StdEncoding.EncodeToString(b), nil
}
