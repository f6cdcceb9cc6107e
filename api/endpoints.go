package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"paidonce/idemkeys"
	"paidonce/outbox"
)

// endpointShape is WebhookEndpointParams of openapi.yaml.
var endpointShape = shape{
	{name: "description", kind: text},
	{name: "enabled_events", kind: texts},
	{name: "url", kind: text},
}

// endpointParams is what the parameters ask for. They are the whole representation: what is left out has its default again.
func endpointParams(p *parameters) outbox.EndpointParams {
	wanted := outbox.EndpointParams{URL: p.text("url"), EnabledEvents: []string{"*"}, Description: p.text("description")}
	if types, given := p.get("enabled_events"); given {
		wanted.EnabledEvents = make([]string, len(types.members))
		for i := range types.members {
			wanted.EnabledEvents[i] = types.members[i].text
		}
	}
	return wanted
}

// shownEndpoint is an endpoint as openapi.yaml has it.
func shownEndpoint(e *outbox.Endpoint) WebhookEndpoint {
	shown := WebhookEndpoint{
		Id: e.ID, Object: WebhookEndpointObjectWebhookEndpoint, Created: e.Created.Unix(), EnabledEvents: e.EnabledEvents, Secret: e.Secret,
		Status: Enabled, Url: e.URL,
	}
	if e.Description != "" {
		shown.Description = &e.Description
	}
	if e.DisabledAt != nil {
		at := e.DisabledAt.Unix()
		shown.Status, shown.DisabledAt = Disabled, &at
		if e.DisabledReason != "" {
			shown.DisabledReason = &e.DisabledReason
		}
	}
	return shown
}

// PutWebhookEndpoint registers an endpoint under the client's id, or replaces what was registered under it.
func (s *Server) PutWebhookEndpoint(c echo.Context, id string) error {
	sent, refused := readParameters(c.Response(), c.Request(), s.cfg.MaxBody, endpointShape)
	if refused != nil {
		return refused
	}
	ctx, cancel := detached(c)
	defer cancel()
	e, created, err := s.cfg.Events.PutEndpoint(ctx, exchangeOf(c).identity.AccountID, id, endpointParams(sent))
	if err != nil {
		return fromEvents(err, "webhook endpoint")
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		c.Response().Header()["Location"] = []string{string(V1webhookEndpoints) + "/" + e.ID} // its characters need no escaping
	}
	writeBody(c, status, idemkeys.Render(shownEndpoint(&e)))
	return nil
}

// GetWebhookEndpoint shows an endpoint as it is now.
func (s *Server) GetWebhookEndpoint(c echo.Context, id string) error {
	ctx, cancel := detached(c)
	defer cancel()
	e, err := s.cfg.Events.GetEndpoint(ctx, exchangeOf(c).identity.AccountID, id)
	return writeEndpoint(c, &e, err)
}

// RotateWebhookEndpointSecret gives an endpoint a new secret; the one before signs as well for a day.
func (s *Server) RotateWebhookEndpointSecret(c echo.Context, id string, _ RotateWebhookEndpointSecretParams) error {
	sent, refused := readParameters(c.Response(), c.Request(), s.cfg.MaxBody, nil) // none is taken
	if refused != nil {
		return refused
	}
	return s.local(c, sent, "webhook_endpoint.rotate_secret", id, func(ctx context.Context, tx idemkeys.Tx) (any, error) {
		e, err := s.cfg.Events.RotateSecret(ctx, tx, exchangeOf(c).identity.AccountID, id)
		return shownEndpoint(&e), err
	}, "webhook endpoint")
}

func writeEndpoint(c echo.Context, e *outbox.Endpoint, err error) error {
	if err != nil {
		return fromEvents(err, "webhook endpoint")
	}
	writeBody(c, http.StatusOK, idemkeys.Render(shownEndpoint(e)))
	return nil
}

// ListWebhookEndpoints shows all endpoints of the account; they are few.
func (s *Server) ListWebhookEndpoints(c echo.Context) error {
	ctx, cancel := detached(c)
	defer cancel()
	endpoints, err := s.cfg.Events.ListEndpoints(ctx, exchangeOf(c).identity.AccountID)
	if err != nil {
		return fromEvents(err, "webhook endpoint")
	}
	all := page[WebhookEndpoint]{Object: "list", URL: string(V1webhookEndpoints), Data: make([]WebhookEndpoint, len(endpoints))}
	for i := range endpoints {
		all.Data[i] = shownEndpoint(&endpoints[i])
	}
	writeBody(c, http.StatusOK, idemkeys.Render(all))
	return nil
}

// DeleteWebhookEndpoint forgets an endpoint and what is queued for it.
func (s *Server) DeleteWebhookEndpoint(c echo.Context, id string) error {
	ctx, cancel := detached(c)
	defer cancel()
	if err := s.cfg.Events.DeleteEndpoint(ctx, exchangeOf(c).identity.AccountID, id); err != nil {
		return fromEvents(err, "webhook endpoint")
	}
	writeBody(c, http.StatusOK, idemkeys.Render(DeletedWebhookEndpoint{Id: id, Object: DeletedWebhookEndpointObjectWebhookEndpoint, Deleted: true}))
	return nil
}
