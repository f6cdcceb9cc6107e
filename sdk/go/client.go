// Package paidonce is a client of a Paidonce installation. It keeps the client's half of the
// contract: it generates a key once for each logical operation, stores it before the first attempt,
// and sends the same bytes at each attempt, even after the program was killed.
package paidonce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"paidonce/sdk/go/rest"
)

// Parameters and objects of the API, generated from openapi.yaml.
type (
	Charge         = rest.Charge
	ChargeParams   = rest.ChargeParams
	CaptureParams  = rest.CaptureParams
	Refund         = rest.Refund
	Dispute        = rest.Dispute
	DisputeQuery   = rest.ListDisputesParams
	RefundParams   = rest.RefundParams
	IdempotencyKey = rest.IdempotencyKey
	TimeRange      = rest.TimeRange
	ChargeQuery    = rest.ListChargesParams
	RefundQuery    = rest.ListRefundsParams

	PaymentIntent              = rest.PaymentIntent
	PaymentIntentParams        = rest.PaymentIntentParams
	PaymentIntentUpdateParams  = rest.PaymentIntentUpdateParams
	PaymentIntentConfirmParams = rest.PaymentIntentConfirmParams
	PaymentIntentCaptureParams = rest.PaymentIntentCaptureParams
	PaymentIntentCancelParams  = rest.PaymentIntentCancelParams
	PaymentIntentQuery         = rest.ListPaymentIntentsParams
	AutomaticMethodsParams     = rest.AutomaticMethodsParams
)

// Ptr returns a pointer to v, for optional parameters.
func Ptr[T any](v T) *T { return &v }

// Config says where the installation is and how long to try.
type Config struct {
	BaseURL string // such as http://127.0.0.1:8080
	APIKey  string
	Store   Store // where operations are kept
	// Deadline bounds a call with all its attempts. 0 means a minute. A context may end the call
	// earlier.
	Deadline time.Duration
	// Attempt bounds one attempt. 0 means 30 seconds.
	Attempt time.Duration
	// MaxAge is the age at which an unfinished operation is no longer sent. 0 means 23 hours, which
	// is below the time that the server keeps a key.
	MaxAge time.Duration
	HTTP   *http.Client // nil means a client of its own
}

// Client calls a Paidonce installation. It is safe for concurrent use.
type Client struct {
	cfg  Config
	base *url.URL
	http *http.Client
}

// New returns a client.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" ||
		base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("paidonce: BaseURL has to be the URL of an installation, such as " +
			"http://127.0.0.1:8080")
	}
	if cfg.Store == nil {
		return nil, errors.New("paidonce: a Store is required")
	}
	if cfg.APIKey == "" || strings.ContainsFunc(cfg.APIKey, func(r rune) bool {
		return r <= ' ' || r > '~'
	}) {
		return nil,
			errors.New("paidonce: APIKey has to be an API key, without spaces or line breaks")
	}
	for limit, usual := range map[*time.Duration]time.Duration{&cfg.Deadline: time.Minute,
		&cfg.Attempt: 30 * time.Second, &cfg.MaxAge: 23 * time.Hour} {
		if *limit == 0 {
			*limit = usual
		}
	}
	own := http.Client{}
	if cfg.HTTP != nil {
		own = *cfg.HTTP
	}
	// A redirect would carry the request and its API key to another place.
	own.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	return &Client{cfg: cfg, base: base, http: &own}, nil
}

// Result is an object, with what else the answer said.
type Result[T any] struct {
	Data      T
	Status    int
	RequestID string
	Replayed  bool // whether the answer was stored by an earlier request: at the server, or here
	Header    http.Header
}

// CreateCharge charges once for the operation's name, however often and wherever it is called.
func (c *Client) CreateCharge(
	ctx context.Context, operation string, p ChargeParams,
) (*Result[Charge], error) {
	return run[Charge](ctx, c, operation, "/v1/charges", p)
}

// errWholeCharge: a [Refund] or [Dispute] has room for the id.
var errWholeCharge = errors.New(
	"paidonce: leave the charge out of Expand, and read it by its id with Client.Charge")

// CaptureCharge takes the money of a charge that was created with Capture false.
func (c *Client) CaptureCharge(
	ctx context.Context, operation, id string, p CaptureParams,
) (*Result[Charge], error) {
	name, err := segment(id)
	if err != nil {
		return nil, err
	}
	return run[Charge](ctx, c, operation, "/v1/charges/"+name+"/capture", p)
}

// CancelCharge lets go of a charge that was created with Capture false, or ends one that waits for
// its payer.
func (c *Client) CancelCharge(ctx context.Context, operation, id string) (*Result[Charge], error) {
	name, err := segment(id)
	if err != nil {
		return nil, err
	}
	return run[Charge](ctx, c, operation, "/v1/charges/"+name+"/cancel", struct{}{})
}

// CreateRefund gives money back, once for the operation's name.
func (c *Client) CreateRefund(
	ctx context.Context, operation string, p RefundParams,
) (*Result[Refund], error) {
	if slices.Contains(p.Expand, rest.RefundExpandCharge) {
		return nil, errWholeCharge
	}
	return run[Refund](ctx, c, operation, "/v1/refunds", p)
}

// Charge reads a charge as it is now.
func (c *Client) Charge(ctx context.Context, id string) (*Result[Charge], error) {
	return retrieve[Charge](ctx, c, "/v1/charges/", id, "charge")
}

// Refund reads a refund as it is now.
func (c *Client) Refund(ctx context.Context, id string) (*Result[Refund], error) {
	return retrieve[Refund](ctx, c, "/v1/refunds/", id, "refund")
}

// Dispute reads a dispute as it is now.
func (c *Client) Dispute(ctx context.Context, id string) (*Result[Dispute], error) {
	return retrieve[Dispute](ctx, c, "/v1/disputes/", id, "dispute")
}

// IdempotencyKey reads the state of a key.
func (c *Client) IdempotencyKey(ctx context.Context, key string) (*Result[IdempotencyKey], error) {
	return retrieve[IdempotencyKey](ctx, c, "/v1/idempotency_keys/", key, "idempotency_key")
}

// Resume continues an operation that was begun; it needs no parameters. The answer's data is a
// charge, a payment intent or a refund, as JSON.
func (c *Client) Resume(ctx context.Context, name string) (*Result[json.RawMessage], error) {
	op, err := c.cfg.Store.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	if op == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknownOperation, name)
	}
	return drive[json.RawMessage](ctx, c, *op, false)
}

// Unfinished returns the operations without an answer: Resume each of them when your program
// starts.
func (c *Client) Unfinished(ctx context.Context) ([]Operation, error) {
	return c.cfg.Store.Unfinished(ctx)
}

// Forget lets the name be used again, under a new key. Call it only for an operation whose outcome
// you know.
func (c *Client) Forget(ctx context.Context, name string) error {
	return c.cfg.Store.Forget(ctx, name)
}

// BeginCharge stores a charge and sends nothing. With a store on the transaction that creates your
// order, the order and its payment are begun together or not at all. Resume the charge after the
// commit.
func BeginCharge(ctx context.Context, s Store, operation string, p ChargeParams) error {
	_, _, err := begin(ctx, s, operation, "/v1/charges", p)
	return err
}

// at returns the URL of a path of the API. The installation may be below a path of its own.
func (c *Client) at(path string) string { return strings.TrimRight(c.base.String(), "/") + path }

// segment returns an id as a part of a path. An empty id, or one that a URL changes, is an error:
// the request would be for something else.
func segment(id string) (string, error) {
	if id == "" || id == "." || id == ".." {
		return "", fmt.Errorf("paidonce: %q is not an id", id)
	}
	return url.PathEscape(id), nil
}

func retrieve[T any](
	ctx context.Context, c *Client, folder, id, object string,
) (*Result[T], error) {
	name, err := segment(id)
	if err != nil {
		return nil, err
	}
	return call[T](ctx, c, outgoing{
		method: http.MethodGet, address: c.at(folder + name), object: object,
	})
}

// list reads a page; the generated client knows how to write a query.
func list[T any](
	ctx context.Context, c *Client, request func(server string) (*http.Request, error),
) (*Result[T], error) {
	// Without the slash, the last part of the installation's own path would be lost.
	req, err := request(c.at("/"))
	if err != nil {
		return nil, err
	}
	return call[T](ctx, c, outgoing{
		method: http.MethodGet, address: req.URL.String(), object: "list",
	})
}

// call makes a call for which no operation is stored: repeating it changes nothing, or it has a key
// for its own attempts.
func call[T any](ctx context.Context, c *Client, o outgoing) (*Result[T], error) {
	a, err := c.exchange(ctx, o)
	if err != nil {
		return nil, err
	}
	return result[T](a)
}

func result[T any](a answer) (*Result[T], error) {
	if !a.success() {
		return nil, errorOf(a)
	}
	r := &Result[T]{
		Status: a.status, RequestID: a.header.Get("Request-Id"), Replayed: a.replayed(),
		Header: a.header,
	}
	if err := json.Unmarshal(a.body, &r.Data); err != nil {
		return nil, fmt.Errorf("paidonce: the answer cannot be read: %w", err)
	}
	return r, nil
}
