package paidonce

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"net/http"

	"paidonce/sdk/go/rest"
)

// Parameters and objects of the API, generated from openapi.yaml. [Event] is also what webhooks
// deliver.
type (
	EventQuery             = rest.ListEventsParams
	EventType              = rest.EventType
	EventResend            = rest.EventResend
	EventResendParams      = rest.EventResendParams
	WebhookEndpoint        = rest.WebhookEndpoint
	WebhookEndpointParams  = rest.WebhookEndpointParams
	DeletedWebhookEndpoint = rest.DeletedWebhookEndpoint

	WebhookEndpointCreateParams = rest.WebhookEndpointCreateParams
	WebhookEndpointUpdateParams = rest.WebhookEndpointUpdateParams
	WebhookEndpointUpdated      = rest.WebhookEndpointUpdated
)

// The orders of an [EventQuery].
const (
	OldestFirst = rest.Asc // the default
	NewestFirst = rest.Desc
)

// Events returns all events that the query selects, page by page, up to the last that exists now:
// oldest first, unless the query says otherwise. To continue later, pass the id of the last one as
// StartingAfter: you miss none and get none twice. An error ends the sequence; the code
// resource_missing says that the event of StartingAfter is no longer kept.
func (c *Client) Events(ctx context.Context, q EventQuery) iter.Seq2[Event, error] {
	return pages(q.Limit, q.StartingAfter, func(limit int, from *string) ([]Event, bool, error) {
		q.Limit, q.StartingAfter = &limit, from
		page, err := list[struct {
			Data    []Event `json:"data"`
			HasMore bool    `json:"has_more"`
		}](ctx, c, func(server string) (*http.Request, error) {
			return rest.NewListEventsRequest(server, &q)
		})
		if err != nil {
			return nil, false, err
		}
		return page.Data.Data, page.Data.HasMore, nil
	}, func(e Event) string { return e.ID })
}

// Event reads an event.
func (c *Client) Event(ctx context.Context, id string) (*Result[Event], error) {
	return retrieve[Event](ctx, c, "/v1/events/", id, "event")
}

// ResendEvent delivers an event again, under the same id, to all endpoints that want it or to the
// one that p names. Each call delivers it once, even if answers are lost.
func (c *Client) ResendEvent(
	ctx context.Context, id string, p EventResendParams,
) (*Result[EventResend], error) {
	return send[EventResend](ctx, c, http.MethodPost, "/v1/events/", id, "/resend", "event_resend",
		p)
}

// PutWebhookEndpoint registers an endpoint under an id of your choice, or replaces the one with
// that id, whose secret stays. Repeating it changes nothing, so call it whenever your program
// starts. The answer has the secret that signs the deliveries.
func (c *Client) PutWebhookEndpoint(
	ctx context.Context, id string, p WebhookEndpointParams,
) (*Result[WebhookEndpoint], error) {
	return send[WebhookEndpoint](ctx, c, http.MethodPut, endpoints, id, "", "webhook_endpoint", p)
}

// CreateWebhookEndpoint registers an endpoint under a new id. Each call registers one, even if
// answers are lost. A program that registers itself whenever it starts calls PutWebhookEndpoint.
func (c *Client) CreateWebhookEndpoint(
	ctx context.Context, p WebhookEndpointCreateParams,
) (*Result[WebhookEndpoint], error) {
	o := outgoing{
		method: http.MethodPost, address: c.at("/v1/webhook_endpoints"),
		object: "webhook_endpoint", key: rand.Text(),
	}
	var err error
	if o.body, err = json.Marshal(p); err != nil {
		return nil, err
	}
	return call[WebhookEndpoint](ctx, c, o)
}

// UpdateWebhookEndpoint changes what p names of an endpoint. The answer has no secret.
func (c *Client) UpdateWebhookEndpoint(
	ctx context.Context, id string, p WebhookEndpointUpdateParams,
) (*Result[WebhookEndpointUpdated], error) {
	return send[WebhookEndpointUpdated](ctx, c, http.MethodPost, endpoints, id, "",
		"webhook_endpoint", p)
}

// WebhookEndpoint reads an endpoint as it is now.
func (c *Client) WebhookEndpoint(ctx context.Context, id string) (*Result[WebhookEndpoint], error) {
	return retrieve[WebhookEndpoint](ctx, c, endpoints, id, "webhook_endpoint")
}

// WebhookEndpoints reads all endpoints, the newest first; there are 50 at most.
func (c *Client) WebhookEndpoints(ctx context.Context) ([]WebhookEndpoint, error) {
	r, err := list[rest.WebhookEndpointList](ctx, c,
		func(server string) (*http.Request, error) {
			return rest.NewListWebhookEndpointsRequest(server, nil)
		})
	if err != nil {
		return nil, err
	}
	return r.Data.Data, nil
}

// DeleteWebhookEndpoint deletes an endpoint and what is queued for it. [ErrNotFound] may mean that
// an earlier attempt of yours deleted it.
func (c *Client) DeleteWebhookEndpoint(
	ctx context.Context, id string,
) (*Result[DeletedWebhookEndpoint], error) {
	return send[DeletedWebhookEndpoint](ctx, c, http.MethodDelete, endpoints, id, "",
		"webhook_endpoint", nil)
}

// RotateWebhookEndpointSecret generates a new secret. The earlier ones sign, too, for another 24
// hours. Each call generates one, even if answers are lost.
func (c *Client) RotateWebhookEndpointSecret(
	ctx context.Context, id string,
) (*Result[WebhookEndpoint], error) {
	return send[WebhookEndpoint](ctx, c, http.MethodPost, endpoints, id, "/rotate_secret",
		"webhook_endpoint", nil)
}

const endpoints = "/v1/webhook_endpoints/"

// send makes a change that moves no money. A POST has a key for the attempts of this call;
// repeating the others changes nothing.
func send[T any](
	ctx context.Context, c *Client, method, folder, id, rest, object string, params any,
) (*Result[T], error) {
	name, err := segment(id)
	if err != nil {
		return nil, err
	}
	o := outgoing{method: method, address: c.at(folder + name + rest), object: object}
	if method == http.MethodPost {
		o.key = rand.Text()
	}
	if params != nil {
		if o.body, err = json.Marshal(params); err != nil {
			return nil, err
		}
	}
	return call[T](ctx, c, o)
}
