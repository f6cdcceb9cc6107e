package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"paidonce/outbox"
	"paidonce/problem"
)

// endpointParams returns what the parameters ask for. A PUT has the whole representation, so what
// is left out gets its default again.
func endpointParams(p *parameters) outbox.EndpointParams {
	wanted := outbox.EndpointParams{
		URL: p.text("url"), EnabledEvents: []string{"*"}, Description: p.text("description"),
	}
	if types := p.texts("enabled_events"); types != nil {
		wanted.EnabledEvents = types
	}
	return wanted
}

// createWebhookEndpoint registers an endpoint under our own id, once for the request's key if it
// has one.
func (s *Server) createWebhookEndpoint(c echo.Context, r *request) error {
	sent, refused := s.readBody(c, r)
	if refused != nil {
		return refused
	}
	if v := sent.text("api_version"); v != "" && v != outbox.APIVersion {
		return invalidParameter("api_version",
			"api_version must be %s: events have that version's shapes. Or leave it out.",
			outbox.APIVersion)
	}
	if connect, given := sent.get("connect"); given && connect.boolean {
		return invalidParameter("connect",
			"connect must be false: an endpoint gets the events of its own account only.")
	}
	wanted := endpointParams(sent)
	wanted.Metadata = sent.pairs("metadata")
	res, err := s.cfg.Events.CreateEndpoint(context.WithoutCancel(c.Request().Context()),
		keyRequest(c, r, sent), wanted)
	return writeLocal(c, r, res, err, "webhook endpoint")
}

// updateWebhookEndpoint changes what the request names, and leaves the rest.
func (s *Server) updateWebhookEndpoint(c echo.Context, r *request) error {
	sent, refused := s.readBody(c, r)
	if refused != nil {
		return refused
	}
	change := outbox.EndpointChange{EnabledEvents: sent.texts("enabled_events")}
	if v, given := sent.get("url"); given {
		change.URL = &v.text
	}
	if v, given := sent.get("description"); given {
		change.Description = &v.text // empty where it was unset
	}
	if v, given := sent.get("disabled"); given {
		change.Disabled = &v.boolean
	}
	change.Metadata, change.ClearMetadata = sent.changes("metadata")
	res, err := s.cfg.Events.UpdateEndpoint(context.WithoutCancel(c.Request().Context()),
		keyRequest(c, r, sent), r.param, change)
	return writeLocal(c, r, res, err, "webhook endpoint")
}

// putWebhookEndpoint registers an endpoint under the client's id, or replaces what was registered
// under it.
func (s *Server) putWebhookEndpoint(c echo.Context, r *request) error {
	sent, refused := s.readBody(c, r)
	if refused != nil {
		return refused
	}
	ctx, cancel := detached(c)
	defer cancel()
	e, created, err := s.cfg.Events.PutEndpoint(ctx, r.identity.AccountID, r.param,
		endpointParams(sent))
	if err != nil {
		return fromEvents(err, "webhook endpoint")
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		// The characters of an id need no escaping.
		c.Response().Header()["Location"] = []string{c.Request().URL.Path}
	}
	writeBody(c, status, problem.Render(e))
	return nil
}

// getWebhookEndpoint shows an endpoint as it is now.
func (s *Server) getWebhookEndpoint(c echo.Context, r *request) error {
	ctx, cancel := detached(c)
	defer cancel()
	e, err := s.cfg.Events.GetEndpoint(ctx, r.identity.AccountID, r.param)
	if err != nil {
		return fromEvents(err, "webhook endpoint")
	}
	writeBody(c, http.StatusOK, problem.Render(visible(r, e)[0]))
	return nil
}

// rotateWebhookEndpointSecret gives an endpoint a new secret; the one before signs as well for a
// day.
func (s *Server) rotateWebhookEndpointSecret(c echo.Context, r *request) error {
	sent, refused := s.readBody(c, r) // which takes no parameter
	if refused != nil {
		return refused
	}
	res, err := s.cfg.Events.RotateSecret(context.WithoutCancel(c.Request().Context()),
		keyRequest(c, r, sent), r.param)
	return writeLocal(c, r, res, err, "webhook endpoint")
}

// listWebhookEndpoints shows a page of the account's endpoints, the newest first. They are few: all
// are read, and the page is cut out of them.
func (s *Server) listWebhookEndpoints(c echo.Context, r *request) error {
	if e := oneCursor(r.query); e != nil {
		return e
	}
	ctx, cancel := detached(c)
	defer cancel()
	endpoints, err := s.cfg.Events.ListEndpoints(ctx, r.identity.AccountID)
	if err != nil {
		return fromEvents(err, "webhook endpoint")
	}
	endpoints, more, refused := endpointPage(endpoints, r.query)
	if refused != nil {
		return refused
	}
	writeBody(c, http.StatusOK, problem.Render(page[outbox.Endpoint]{
		Object: "list", URL: r.op.path, HasMore: more, Data: visible(r, endpoints...),
	}))
	return nil
}

// endpointPage cuts the page that the query asks for out of all endpoints. more reports whether
// there are others in the direction in which it was read.
func endpointPage(
	all []outbox.Endpoint, query *parameters,
) (_ []outbox.Endpoint, more bool, _ *problem.Error) {
	name := "starting_after"
	before := query.text("ending_before") != ""
	if before {
		name = "ending_before"
	}
	if cursor := query.text(name); cursor != "" {
		at := slices.IndexFunc(all, func(e outbox.Endpoint) bool { return e.ID == cursor })
		switch {
		case at < 0:
			return nil, false, problem.CursorMissing.Of(name,
				"%s names no webhook endpoint of yours.", name)
		case before:
			all = all[:at]
		default:
			all = all[at+1:]
		}
	}
	limit := int(query.integer("limit"))
	switch {
	case len(all) <= limit:
		return all, false, nil
	case before:
		return all[len(all)-limit:], true, nil
	}
	return all[:limit], true, nil
}

// deleteWebhookEndpoint forgets an endpoint and what is queued for it.
func (s *Server) deleteWebhookEndpoint(c echo.Context, r *request) error {
	ctx, cancel := detached(c)
	defer cancel()
	if err := s.cfg.Events.DeleteEndpoint(ctx, r.identity.AccountID, r.param); err != nil {
		return fromEvents(err, "webhook endpoint")
	}
	writeBody(c, http.StatusOK, problem.Render(struct {
		Deleted bool   `json:"deleted"`
		ID      string `json:"id"`
		Object  string `json:"object"`
	}{true, r.param, "webhook_endpoint"}))
	return nil
}
