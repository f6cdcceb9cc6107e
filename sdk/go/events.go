package paidonce

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"

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
		page, err := read1[struct {
			Data    []Event `json:"data"`
			HasMore bool    `json:"has_more"`
		}](ctx, c, func(at string) (*http.Request, error) { return rest.NewListEventsRequest(at, &q) })
		if err != nil {
			return nil, false, err
		}
		return page.Data.Data, page.Data.HasMore, nil
	}, func(e Event) string { return e.ID })
}

// Event reads an event.
func (c *Client) Event(ctx context.Context, id string) (*Result[Event], error) {
	return read1[Event](ctx, c, func(at string) (*http.Request, error) { return rest.NewGetEventRequest(at, id) })
}

// ResendEvent has an event delivered again, under the same id: to all endpoints that want it, or to the one that p names.
func (c *Client) ResendEvent(ctx context.Context, id string, p EventResendParams) (*Result[EventResend], error) {
	return send[EventResend](ctx, c, http.MethodPost, "/v1/events/"+url.PathEscape(id)+"/resend", p)
}

// PutWebhookEndpoint registers an endpoint under an id of your choice, or replaces what was registered under it; the secret stays. It may be
// repeated as often as you like, so call it whenever your program starts.
func (c *Client) PutWebhookEndpoint(ctx context.Context, id string, p WebhookEndpointParams) (*Result[WebhookEndpoint], error) {
	return send[WebhookEndpoint](ctx, c, http.MethodPut, endpointPath(id), p)
}

// WebhookEndpoint reads an endpoint as it is now.
func (c *Client) WebhookEndpoint(ctx context.Context, id string) (*Result[WebhookEndpoint], error) {
	return read1[WebhookEndpoint](ctx, c, func(at string) (*http.Request, error) { return rest.NewGetWebhookEndpointRequest(at, id) })
}

// WebhookEndpoints reads all endpoints; there are 50 at most.
func (c *Client) WebhookEndpoints(ctx context.Context) ([]WebhookEndpoint, error) {
	r, err := read1[rest.WebhookEndpointList](ctx, c, rest.NewListWebhookEndpointsRequest)
	if err != nil {
		return nil, err
	}
	return r.Data.Data, nil
}

// DeleteWebhookEndpoint forgets an endpoint and what is queued for it. [ErrNotFound] may also mean that an attempt whose answer was lost has
// deleted it.
func (c *Client) DeleteWebhookEndpoint(ctx context.Context, id string) (*Result[DeletedWebhookEndpoint], error) {
	return send[DeletedWebhookEndpoint](ctx, c, http.MethodDelete, endpointPath(id), nil)
}

// RotateWebhookEndpointSecret gives an endpoint a new secret; those before it sign as well for a day. After a lost answer it is rotated once
// more, which does no harm.
func (c *Client) RotateWebhookEndpointSecret(ctx context.Context, id string) (*Result[WebhookEndpoint], error) {
	return send[WebhookEndpoint](ctx, c, http.MethodPost, endpointPath(id)+"/rotate_secret", nil)
}

func endpointPath(id string) string { return "/v1/webhook_endpoints/" + url.PathEscape(id) }

// send makes a call that does the same when it is repeated, so no operation is kept for it.
func send[T any](ctx context.Context, c *Client, method, path string, params any) (*Result[T], error) {
	var body []byte
	if params != nil {
		var err error
		if body, err = json.Marshal(params); err != nil {
			return nil, err
		}
	}
	a, err := c.exchange(ctx, method, c.at()+path, body, "")
	if err != nil {
		return nil, err
	}
	return result[T](a)
}
