package stripe

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/stripe/stripe-go/v76"
)

// direct carries POSTs to one host in the goroutine of their caller: it writes the request in one
// piece and reads the answer where it waits for it. http.Transport keeps two goroutines a
// connection and hands each exchange to them and back, which was a quarter of the CPU time of a
// charge in this server, and half of the memory of one that waits. stripe-go says what is sent and
// reads the errors; it still carries whatever is no POST, and everything when there is a proxy.
//
// A request is written at most once: on a connection that was idle nothing is sent when its end has
// arrived meanwhile, and it is sent on a new one only when not a single byte of it was written.
// Whatever else goes wrong is an error, and the outcome is unknown. It is safe for concurrent use.
type direct struct {
	transport *http.Transport // its settings are used here, too
	backend   *sdk.BackendImplementation
	clock     *clock
	address   string // host:port
	host      string // as the certificate has to name it
	secure    bool
	before    string // of a request, up to its path
	headers   string // stripe-go's, but for those that differ from request to request

	mu   sync.Mutex
	idle []*conn // idle ones, the longest idle first; the last is taken first, so few stay in use
	reap *time.Timer
}

// conn is one connection. Whoever has taken it uses it alone.
type conn struct {
	net.Conn
	socket    net.Conn // below TLS
	in        *bufio.Reader
	left      int64 // bytes that may still be read
	idleSince time.Time
}

// maxInterim is how many 1xx answers may precede an answer; http.Transport allows as many.
const maxInterim = 5

const formType = "application/x-www-form-urlencoded"

// newDirect makes one for the host of base, a URL that baseURL has accepted.
func newDirect(
	base, apiKey string, transport *http.Transport, backend *sdk.BackendImplementation, c *clock,
) (*direct, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	d := &direct{
		transport: transport, backend: backend, clock: c,
		host: u.Hostname(), secure: u.Scheme == "https", before: "POST " + u.EscapedPath(),
	}
	port := u.Port()
	switch {
	case port != "":
	case d.secure:
		port = "443"
	default:
		port = "80"
	}
	d.address = net.JoinHostPort(d.host, port)
	params := &sdk.Params{IdempotencyKey: sdk.String("example")}
	example, err := backend.NewRequest(http.MethodPost, "/v1/charges", apiKey, formType, params)
	if err != nil {
		return nil, err
	}
	example.Header.Del(keyHeader)
	var b strings.Builder
	b.WriteString(" HTTP/1.1\r\nHost: " + u.Host + "\r\n")
	if err := example.Header.Write(&b); err != nil {
		return nil, err
	}
	d.headers = b.String()
	return d, nil
}

// post sends a form and notes in r what came of it. Its error is the context's, the network's, or
// stripe-go's about an answer that is no success.
func (d *direct) post(ctx context.Context, path, key, form string, r *result) error {
	c, stop, err := d.send(ctx, path, key, form, r)
	if err != nil {
		return cause(ctx, err)
	}
	keep, err := d.answer(ctx, c, r)
	if stop() && keep {
		d.put(c)
	} else {
		_ = c.Close()
	}
	return err
}

// send writes a form, and returns the connection on which its answer will come. Until stop is
// called the connection breaks when ctx ends.
func (d *direct) send(
	ctx context.Context, path, key, form string, r *result,
) (c *conn, stop func() bool, err error) {
	b := requests.Get().(*bytes.Buffer) //nolint:errcheck // nothing else is in the pool
	defer requests.Put(b)
	b.Reset()
	for _, s := range [...]string{
		d.before, path, d.headers, keyHeader, ": ", key,
		"\r\nContent-Length: ", strconv.Itoa(len(form)), "\r\n\r\n", form,
	} {
		b.WriteString(s)
	}
	for {
		c, reused, err := d.take(ctx)
		if err != nil {
			return nil, nil, err
		}
		r.connected.Store(true)
		stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(past) })
		n, err := c.Write(b.Bytes())
		if err == nil {
			return c, stop, nil
		}
		stop()
		_ = c.Close()
		if n > 0 || !reused || ctx.Err() != nil {
			return nil, nil, err
		}
		r.connected.Store(false) // nobody has read a byte of this connection
	}
}

// answer reads an answer, of which keep says that the connection is of further use.
func (d *direct) answer(ctx context.Context, c *conn, r *result) (keep bool, err error) {
	//nolint:bodyclose // closed with the connection, which is kept only when the body has ended
	resp, err := c.head(d.transport.MaxResponseHeaderBytes)
	if err != nil {
		return false, cause(ctx, err)
	}
	d.clock.read(resp.Header)
	r.status, r.header = resp.StatusCode, resp.Header
	body, err := r.read(resp)
	if err != nil {
		return false, cause(ctx, err)
	}
	switch keep = !resp.Close && resp.StatusCode != http.StatusSwitchingProtocols; {
	case resp.StatusCode >= http.StatusBadRequest:
		return keep, d.backend.ResponseToError(resp, body)
	case resp.StatusCode >= http.StatusOK && resp.StatusCode < http.StatusMultipleChoices:
		r.body = body
	}
	return keep, nil
}

// requests holds buffers for requests, which are written whole.
var requests = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// past is a deadline that is over: whoever reads or writes gives up at once.
var past = time.Unix(1, 0)

// cause is the context's error when that is why the network failed: a connection's deadline is that
// of its context, and may pass a moment before.
func cause(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return context.DeadlineExceeded
	}
	return err
}

// take returns a connection with the deadline of ctx: an idle one on which nothing has arrived
// since, or a new one.
func (d *direct) take(ctx context.Context) (c *conn, reused bool, err error) {
	deadline, _ := ctx.Deadline()
	for {
		if c = d.pop(); c == nil {
			break
		}
		// An answer that nobody asked for would be taken for that to the next request.
		if c.SetDeadline(deadline) == nil && c.in.Buffered() == 0 && quiet(c.socket) {
			return c, true, nil
		}
		_ = c.Close()
	}
	if c, err = d.connect(ctx); err != nil {
		return nil, false, err
	}
	if err = c.SetDeadline(deadline); err != nil {
		_ = c.Close()
		return nil, false, err
	}
	return c, false, nil
}

// connect makes a connection, with the transport's settings.
func (d *direct) connect(ctx context.Context) (*conn, error) {
	socket, err := d.transport.DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: socket, socket: socket}
	if d.secure {
		cfg := d.transport.TLSClientConfig.Clone()
		cfg.ServerName = d.host
		secured := tls.Client(socket, cfg)
		ctx, cancel := context.WithTimeout(ctx, d.transport.TLSHandshakeTimeout)
		defer cancel()
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = socket.Close()
			return nil, err
		}
		c.Conn = secured
	}
	c.in = bufio.NewReaderSize(c, d.transport.ReadBufferSize)
	return c, nil
}

// Read reads no more than what the connection has left.
func (c *conn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.Conn.Read(p)
	c.left -= int64(n)
	return n, err
}

// head reads the head of an answer, of up to limit bytes. Its body is not bounded.
func (c *conn) head(limit int64) (*http.Response, error) {
	for range maxInterim + 1 {
		c.left = limit
		_, err := c.in.Peek(1)
		var resp *http.Response
		if err == nil { // it has waited above, with fewer frames on its stack
			resp, err = http.ReadResponse(c.in, nil)
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if resp.StatusCode >= http.StatusOK || resp.StatusCode == http.StatusSwitchingProtocols {
			c.left = math.MaxInt64
			return resp, nil
		}
	}
	return nil, errors.New("too many 1xx answers")
}

// pop takes the idle connection that was used last, or nil.
func (d *direct) pop() *conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.idle)
	if n == 0 {
		return nil
	}
	c := d.idle[n-1]
	d.idle[n-1] = nil
	d.idle = d.idle[:n-1]
	return c
}

// put keeps a connection for the next request, unless enough are kept.
func (d *direct) put(c *conn) {
	c.idleSince = time.Now() //tidy:clock how long it is idle
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.idle) >= d.transport.MaxIdleConnsPerHost {
		_ = c.Close()
		return
	}
	d.idle = append(d.idle, c)
	if d.reap == nil {
		d.reap = time.AfterFunc(d.transport.IdleConnTimeout, d.closeOld)
	}
}

// closeOld closes what has been idle for too long, and comes again while connections are left.
func (d *direct) closeOld() {
	for _, c := range d.old() {
		_ = c.Close()
	}
}

func (d *direct) old() []*conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now() //tidy:clock how long connections have been idle
	young := slices.IndexFunc(d.idle, func(c *conn) bool {
		return now.Sub(c.idleSince) < d.transport.IdleConnTimeout
	})
	if young < 0 {
		young = len(d.idle)
	}
	old := slices.Clone(d.idle[:young])
	d.idle = slices.Delete(d.idle, 0, young)
	d.reap = nil
	if len(d.idle) > 0 {
		d.reap = time.AfterFunc(d.transport.IdleConnTimeout-now.Sub(d.idle[0].idleSince), d.closeOld)
	}
	return old
}

// CloseIdleConnections closes what is idle.
func (d *direct) CloseIdleConnections() {
	d.mu.Lock()
	idle := d.idle
	d.idle = nil
	d.mu.Unlock()
	for _, c := range idle {
		_ = c.Close()
	}
}
