package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"paidonce/idemkeys"
	"paidonce/outbox"
)

// Events is what the edge asks of events and of the endpoints that they are delivered to; *outbox.Store is the one in production.
type Events interface {
	// List returns a page of events. Errors: [outbox.ErrNotFound] for an unknown cursor, [*outbox.ParamError], or the database's.
	List(ctx context.Context, accountID string, f outbox.Filter) (outbox.Page, error)
	// Get returns an event. Errors: [outbox.ErrNotFound], or the database's.
	Get(ctx context.Context, accountID, id string) (outbox.Event, error)
	// NumberAll gives new events their places. Errors: the database's.
	NumberAll(ctx context.Context) error
	// Resend queues an event once more for one endpoint, or with "" for all that want it. Errors: [outbox.ErrNotFound], [outbox.ErrNoEndpoint], or the
	// database's.
	Resend(ctx context.Context, tx idemkeys.Tx, accountID, id, endpoint string) (int, error)
	// PutEndpoint registers an endpoint, or replaces what was registered. Errors: [*outbox.ParamError], or the database's.
	PutEndpoint(ctx context.Context, accountID, id string, p outbox.EndpointParams) (e outbox.Endpoint, created bool, err error)
	// GetEndpoint returns an endpoint. Errors: [outbox.ErrNotFound], or the database's.
	GetEndpoint(ctx context.Context, accountID, id string) (outbox.Endpoint, error)
	// ListEndpoints returns all endpoints. Errors: the database's.
	ListEndpoints(ctx context.Context, accountID string) ([]outbox.Endpoint, error)
	// DeleteEndpoint forgets an endpoint. Errors: [outbox.ErrNotFound], or the database's.
	DeleteEndpoint(ctx context.Context, accountID, id string) error
	// RotateSecret gives an endpoint a new secret. Errors: [outbox.ErrNotFound], or the database's.
	RotateSecret(ctx context.Context, tx idemkeys.Tx, accountID, id string) (outbox.Endpoint, error)
}

// eventListShape is the query of listEvents.
var eventListShape = shape{
	{name: "limit", kind: integer},
	{name: "order", kind: text},
	{name: "starting_after", kind: text},
	{name: "type", kind: text},
}

// resendShape is EventResendParams of openapi.yaml.
var resendShape = shape{
	{name: "webhook_endpoint", kind: text},
}

// fromEvents is the answer to what the domain says of an event or an endpoint.
func fromEvents(err error, what string) *apiError {
	var p *outbox.ParamError
	switch {
	case errors.As(err, &p):
		return &apiError{fault: faultParameter.as(p.Code, p.Message), param: shown(p.Param)}
	case errors.Is(err, outbox.ErrNoEndpoint):
		return faultResourceMissing.of("webhook_endpoint", "There is no such webhook endpoint.")
	case errors.Is(err, outbox.ErrNotFound):
		return faultResourceMissing.of("id", "There is no such %s.", what)
	}
	return fromDatabase(err)
}

// ListEvents shows a page of events, the oldest first unless asked otherwise. The bytes of each are those that are delivered.
func (s *Server) ListEvents(c echo.Context, params ListEventsParams) error {
	var f outbox.Filter
	var e *apiError
	if f.Limit, e = pageLimit(params.Limit, queryText{"starting_after", params.StartingAfter, &f.StartingAfter},
		queryText{"type", (*string)(params.Type), &f.Type}); e != nil {
		return e
	}
	if params.Order != nil {
		switch *params.Order {
		case Asc:
		case Desc:
			f.NewestFirst = true
		default:
			return invalidParameter("order", "order must be asc or desc.")
		}
	}
	ctx, cancel := detached(c)
	defer cancel()
	page, err := s.cfg.Events.List(ctx, exchangeOf(c).identity.AccountID, f)
	switch {
	case errors.Is(err, outbox.ErrNotFound):
		return faultCursorMissing.of("starting_after", "starting_after names no event of yours, or one that is no longer kept.")
	case err != nil:
		return fromEvents(err, "event")
	}
	body := []byte(`{"object":"list","url":"` + string(V1events) + `","has_more":` + strconv.FormatBool(page.HasMore) + `,"data":[`)
	for i := range page.Events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, page.Events[i].Payload...)
	}
	writeBody(c, http.StatusOK, append(body, "]}\n"...))
	return nil
}

// GetEvent shows the stored bytes of an event.
func (s *Server) GetEvent(c echo.Context, id string) error {
	ctx, cancel := detached(c)
	defer cancel()
	event, err := s.cfg.Events.Get(ctx, exchangeOf(c).identity.AccountID, id)
	if err != nil {
		return fromEvents(err, "event")
	}
	writeBody(c, http.StatusOK, event.Payload)
	return nil
}

// ResendEvent has an event delivered again, to all endpoints that want it or to one.
func (s *Server) ResendEvent(c echo.Context, id string, _ ResendEventParams) error {
	sent, e := readParameters(c.Response(), c.Request(), s.cfg.MaxBody, resendShape)
	if e != nil {
		return e
	}
	endpoint := sent.text("webhook_endpoint")
	if overlong(endpoint) {
		return invalidParameter("webhook_endpoint", "webhook_endpoint may have at most %d characters.", queryTextMax)
	}
	ctx, cancel := detached(c)
	defer cancel()
	if err := s.cfg.Events.NumberAll(ctx); err != nil { // a new event is queued by that for the first time
		return fromEvents(err, "event")
	}
	return s.local(c, sent, "event.resend", id, func(ctx context.Context, tx idemkeys.Tx) (any, error) {
		queued, err := s.cfg.Events.Resend(ctx, tx, exchangeOf(c).identity.AccountID, id, endpoint)
		return EventResend{Object: EventResendObjectEventResend, Event: id, Deliveries: queued}, err
	}, "event")
}
