package stripe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
)

// result is what is known of one exchange: stripe-go's error, and what it doesn't tell.
type result struct {
	err       error
	local     string // why nothing was sent: a mistake on our side
	keyed     bool   // it went out under a key: it may move money, a read moves none
	connected atomic.Bool
	writes    atomic.Int32 // how often the request was written
	status    int          // 0: no answer came
	header    http.Header
	bodyErr   error  // the answer broke off
	body      []byte // of a 2xx answer
	limit     int64
}

type resultKey struct{}

// watch makes a context through which the transport reports.
//
// GotConn is called when a connection stands, after the TLS handshake, and before the first byte of
// the request is written. If it was never called, the request can't have reached anybody:
// connection refused, no such host, a failed handshake or a deadline during any of them. If it was,
// nothing is certain any more. A proxy makes no difference to that: for https it is called when the
// tunnel through the proxy stands and the handshake with the host behind it is over, and what a
// proxy says that makes no tunnel is an error before. For plain http the connection is the proxy's:
// it may have handed the request on, and its pages are answers that the table has to judge.
func (r *result) watch(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, resultKey{}, r)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: r.gotConn, WroteHeaders: r.wroteHeaders})
}

func (r *result) wroteHeaders() { r.writes.Add(1) }

// resent reports whether a request that may move money may have gone out twice: what an answer says
// about the second, it doesn't say about the first. It is also true when nothing of the first has
// left, which costs a look-up.
func (r *result) resent() bool { return r.keyed && r.writes.Load() > 1 }

func (r *result) gotConn(httptrace.GotConnInfo) { r.connected.Store(true) }

// observer notes status and headers, which stripe-go drops when it can't read a body, and bounds
// the body.
type observer struct {
	base  http.RoundTripper
	clock *clock
}

func (o *observer) RoundTrip(req *http.Request) (*http.Response, error) {
	req, err := sized(req)
	if err != nil {
		return nil, err
	}
	resp, err := o.base.RoundTrip(preventResend(req))
	if err != nil {
		return nil, err
	}
	o.clock.read(resp.Header)
	r, watched := req.Context().Value(resultKey{}).(*result)
	if watched {
		r.status, r.header = resp.StatusCode, resp.Header
		if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
			r.keep(resp)
		} else {
			resp.Body = r.bounded(resp)
		}
	}
	return resp, nil
}

// keep takes the body of a good answer aside and leaves an empty object in its place: stripe-go
// would read through it four times to decode it once, which was a quarter of a charge's time here.
// We decode it, after the call.
func (r *result) keep(resp *http.Response) {
	body, err := r.read(resp)
	_ = resp.Body.Close()
	if err != nil {
		resp.Body = io.NopCloser(brokenOff{err})
		return
	}
	r.body = body
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
}

// bounded is the body of an answer, of up to the result's limit.
func (r *result) bounded(resp *http.Response) *boundedBody {
	return &boundedBody{from: resp.Body, left: r.limit, result: r}
}

// read reads the body of an answer, of up to the result's limit. It does not close it.
func (r *result) read(resp *http.Response) ([]byte, error) {
	var b bytes.Buffer
	if n := resp.ContentLength; n > 0 && n <= r.limit {
		b.Grow(int(n) + bytes.MinRead)
	}
	_, err := b.ReadFrom(r.bounded(resp))
	return b.Bytes(), err
}

// brokenOff is a body that could not be read.
type brokenOff struct{ error }

func (b brokenOff) Read([]byte) (int, error) { return 0, b.error }

// sized gives a body its length. stripe-go hides it, and then net/http sends a POST in chunks, and
// starts a goroutine with a timer for each GET to find out whether there is a body.
func sized(req *http.Request) (*http.Request, error) {
	if req.Body == nil {
		return req, nil
	}
	body, err := io.ReadAll(req.Body)
	if err = errors.Join(err, req.Body.Close()); err != nil {
		return nil, err
	}
	req = req.WithContext(req.Context()) // a RoundTripper must leave its caller's request alone
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	if req.Body, err = req.GetBody(); len(body) == 0 {
		req.Body, req.GetBody = http.NoBody, nil
	}
	return req, err
}

// The header's name in net/http's spelling, and in one that means the same to everybody else.
const (
	keyHeader       = "Idempotency-Key"
	keyHeaderHidden = "idempotency-key"
)

// preventResend keeps net/http from sending a POST again behind our back. When a reused connection
// dies before an answer, although the request was written, Transport sends what
// Request.isReplayable calls replayable a second time, and that is every request with the header
// Idempotency-Key or X-Idempotency-Key. The second answer would pass for that of a first send: a
// 429, "nothing was done", for a charge that was made and whose answer was lost. isReplayable looks
// for exactly these two keys of the header map (Header.has, a plain look-up), as of Go 1.26;
// stripe-go sets only the first. Under another spelling it isn't found, and it is written as it is
// spelled. persistConn.shouldRetryRequest asks before that whether nothing at all was written,
// which is safe to try again and stays so: it needs only the GetBody of sized. What is given up is
// a connection that the server closes in the very moment in which it is taken from the pool:
// unknown, a look-up. TestTransportDoesNotSendAgain fails should Go change its mind.
func preventResend(req *http.Request) *http.Request {
	key, has := req.Header[keyHeader]
	if !has {
		return req
	}
	req = req.WithContext(req.Context())
	req.Header = maps.Clone(req.Header)
	delete(req.Header, keyHeader)
	req.Header[keyHeaderHidden] = key
	return req
}

var errTooLarge = errors.New("the answer is too large")

// boundedBody fails, rather than ends, at its limit: half a list must not pass for a list.
type boundedBody struct {
	from   io.ReadCloser
	left   int64
	result *result
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		err = errTooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.result.bodyErr = err
	}
	return n, err
}

func (b *boundedBody) Close() error { return b.from.Close() }
