package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// conn is one client's connection. It writes requests by hand and reads answers with the standard
// library's parser: a whole http.Client in front of it costs more CPU than some of what is
// measured, on cores that the servers need.
type conn struct {
	target string
	apiKey string
	c      net.Conn
	r      *bufio.Reader
	out    []byte
	// Each charge has a reference of its own, or is an intent's that is confirmed at once.
	references, intents bool
}

// answer has what a client checks.
type answer struct {
	status     int
	replayed   bool
	retryAfter string
}

func dial(ctx context.Context, target, apiKey string) (*conn, error) {
	c, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, err
	}
	return &conn{target: target, apiKey: apiKey, c: c, r: bufio.NewReaderSize(c, 4096)}, nil
}

// post sends a charge, or an intent, and reads the answer. After an error, the connection cannot be
// used any more.
func (c *conn) post(key, description string, amount int64) (a answer, err error) {
	c.out = c.request(c.out[:0], key, description, amount)
	if err := c.c.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		return a, err
	}
	if _, err := c.c.Write(c.out); err != nil {
		return a, err
	}
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return a, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	a = answer{
		res.StatusCode, res.Header.Get("Idempotent-Replayed") == "true",
		res.Header.Get("Retry-After"),
	}
	return a, err
}

func (c *conn) request(b []byte, key, description string, amount int64) []byte {
	body := make([]byte, 0, 512)
	body = append(body, `{"amount":`...)
	body = strconv.AppendInt(body, amount, 10)
	path, pays := "charges", `"source":"tok_visa"`
	if c.intents {
		path, pays = "payment_intents",
			`"payment_method":"pm_card_visa","payment_method_types":["card"],"confirm":true`
	}
	body = append(body, `,"currency":"usd",`+pays+`,"description":"`...)
	body = append(body, description...)
	if c.references {
		body = append(body, `","reference":"`...)
		body = append(body, key...)
	}
	body = append(body, `","metadata":`+sampleMetadata+`}`...)
	b = append(b, "POST /v1/"+path+" HTTP/1.1\r\nHost: "...)
	b = append(b, c.target...)
	b = append(b, "\r\nAuthorization: Bearer "...)
	b = append(b, c.apiKey...)
	b = append(b, "\r\nContent-Type: application/json\r\nIdempotency-Key: "...)
	b = append(b, key...)
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}

func (c *conn) close() { _ = c.c.Close() }

// sample is a finished request: when it ended, since the driver's start, and how long it took.
type sample struct{ at, took time.Duration }

// latencies are exact: of all requests that ended in the window, none thrown away, no histogram.
type latencies struct {
	Count    int           `json:"count"`
	P50, P99 time.Duration `json:"-"`
	Max      time.Duration `json:"-"`
}

func summarize(samples []sample, from, to time.Duration) latencies {
	var took []time.Duration
	for _, s := range samples {
		if s.at >= from && s.at < to {
			took = append(took, s.took)
		}
	}
	if len(took) == 0 {
		return latencies{}
	}
	slices.Sort(took)
	return latencies{len(took), percentile(took, 0.50), percentile(took, 0.99), took[len(took)-1]}
}

// percentile is by nearest rank.
func percentile(sorted []time.Duration, p float64) time.Duration {
	i := int(p*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func decodeLine(line string, into any) error { return json.Unmarshal([]byte(line), into) }
