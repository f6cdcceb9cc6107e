package paidonce

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"net/http"

	"paidonce/sdk/go/rest"
)

// What goes in and comes out, as openapi.yaml says. [Event] is what webhooks deliver, too.
type (
	EventQuery             = rest.ListEventsParams
	EventType              = rest.EventType
	EventResend            = rest.EventResend
	EventResendParams      = rest.EventResendParams
	WebhookEndpoint        = rest.WebhookEndpoint
	WebhookEndpointParams  = rest.WebhookEndpointParams
	DeletedWebhookEndpoint = rest.DeletedWebhookEndpoint
)

// Orders of an [EventQuery].
const (
	OldestFirst = rest.Asc // when nothing is said
	NewestFirst = rest.Desc
)

// Events are all events that the query asks for, oldest first unless it says otherwise, page after page, up to the last there is now. To read
// on later give the id of the last one as StartingAfter: nothing is missed, and nothing comes twice. An error ends them; one with the code
// resource_missing says that the event of StartingAfter is no longer kept.
func (c *Client) Events(ctx context.Context, q EventQuery) iter.Seq2[Event, error] {
	return pages(q.Limit, q.StartingAfter, func(limit int, from *string) ([]Event, bool, error) {
		q.Limit, q.StartingAfter = &limit, from
		page, err := list[struct {
			Data    []Event `json:"data"`
			HasMore bool    `json:"has_more"`
		}](ctx, c, func(server string) (*http.Request, error) { return rest.NewListEventsRequest(server, &q) })
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

// ResendEvent has an event delivered once more, under the same id: to all endpoints that want it, or to the one that p names. Once for each call,
// whatever answers are lost.
func (c *Client) ResendEvent(ctx context.Context, id string, p EventResendParams) (*Result[EventResend], error) {
	return send[EventResend](ctx, c, http.MethodPost, "/v1/events/", id, "/resend", "event_resend", p)
}

// PutWebhookEndpoint registers an endpoint under an id of your choice, or replaces what was registered under it; the secret stays. It may be
// repeated as often as you like, so call it whenever your program starts. The answer has the secret that signs.
func (c *Client) PutWebhookEndpoint(ctx context.Context, id string, p WebhookEndpointParams) (*Result[WebhookEndpoint], error) {
	return send[WebhookEndpoint](ctx, c, http.MethodPut, endpoints, id, "", "webhook_endpoint", p)
}

// WebhookEndpoint reads an endpoint as it is now.
func (c *Client) WebhookEndpoint(ctx context.Context, id string) (*Result[WebhookEndpoint], error) {
	return retrieve[WebhookEndpoint](ctx, c, endpoints, id, "webhook_endpoint")
}

// WebhookEndpoints reads all endpoints; there are 50 at most.
func (c *Client) WebhookEndpoints(ctx context.Context) ([]WebhookEndpoint, error) {
	r, err := list[rest.WebhookEndpointList](ctx, c, rest.NewListWebhookEndpointsRequest)
	if err != nil {
		return nil, err
	}
	return r.Data.Data, nil
}

// DeleteWebhookEndpoint forgets an endpoint and what is queued for it. [ErrNotFound] may mean that an earlier attempt of yours did it.
func (c *Client) DeleteWebhookEndpoint(ctx context.Context, id string) (*Result[DeletedWebhookEndpoint], error) {
	return send[DeletedWebhookEndpoint](ctx, c, http.MethodDelete, endpoints, id, "", "webhook_endpoint", nil)
}

// RotateWebhookEndpointSecret makes a new secret; the ones before sign, too, for another 24 hours. One for each call, whatever answers are lost.
func (c *Client) RotateWebhookEndpointSecret(ctx context.Context, id string) (*Result[WebhookEndpoint], error) {
	return send[WebhookEndpoint](ctx, c, http.MethodPost, endpoints, id, "/rotate_secret", "webhook_endpoint", nil)
}

const endpoints = "/v1/webhook_endpoints/"

// send changes something that is no money. A POST has a key for the attempts of this call; the others do the same when they are repeated.
func send[T any](ctx context.Context, c *Client, method, folder, id, rest, object string, params any) (*Result[T], error) {
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
