package api_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/api"
	"paidonce/internal/world"
)

const (
	// wireTries is how often each way is tried: a reset instead of an answer was seen one time in
	// four.
	wireTries = 40
	// wireAtOnce is how many large deliveries of the provider are read at once. On a slow machine
	// others would be told to come again.
	wireAtOnce = 16
	// wireBody is more than the buffers of both ends take, so that who does not read it makes its
	// sender wait.
	wireBody = 8 << 20
)

// sendAll is a client that sends the whole of a body before it reads, as many do. It returns the
// answer, or why there is none to read.
func sendAll(addr, head string, size int, chunked, waits bool) (status int, code string, err error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, "", err
	}
	in := bufio.NewReader(conn)
	if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
		return 0, "", fmt.Errorf("sending the head: %w", err)
	}
	if waits {
		if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100 ") {
			return 0, "", fmt.Errorf("waiting for 100: %q, %w", line, err)
		}
		if _, err := in.ReadString('\n'); err != nil {
			return 0, "", err
		}
	}
	piece := strings.Repeat("x", 32<<10)
	for sent := 0; sent < size; sent += len(piece) {
		text := piece
		if chunked {
			text = fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
		}
		if _, err := io.WriteString(conn, text); err != nil {
			return 0, "", fmt.Errorf("sending, after %d bytes: %w", sent, err)
		}
	}
	if chunked {
		if _, err := io.WriteString(conn, "0\r\n\r\n"); err != nil {
			return 0, "", fmt.Errorf("sending the end: %w", err)
		}
	}
	res, err := http.ReadResponse(in, nil)
	if err == nil && res.StatusCode == http.StatusContinue { // the answer is behind it
		res, err = http.ReadResponse(in, nil)
	}
	if err != nil {
		return 0, "", fmt.Errorf("reading the answer: %w", err)
	}
	var problem struct{ Error struct{ Code string } }
	err = json.NewDecoder(res.Body).Decode(&problem)
	return res.StatusCode, problem.Error.Code, err
}

// Whoever sends what is not read gets an answer that can be read, each time, whatever way it sends.
func TestARefusedBodyGetsItsAnswer(t *testing.T) {
	t.Parallel()
	e := newEdge(t, func(c *api.Config) { c.MaxBody = 1 << 20 })
	addr := strings.TrimPrefix(e.BaseURL, "http://")
	post := func(path, header string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + header
	}
	const media, key, length = "Content-Type: application/json\r\n", "Idempotency-Key: k\r\n", "Content-Length: 8388608\r\n"
	const te, expect, closes = "Transfer-Encoding: chunked\r\n", "Expect: 100-continue\r\n", "Connection: close\r\n"
	signed := "Stripe-Signature: " + world.Signed([]byte("another body"), whsec, time.Now()) + "\r\n"
	mine, other := "Authorization: Bearer "+secret+"\r\n", "Authorization: Bearer sk_nobody\r\n"
	charge := post("/v1/charges", media+key+mine)
	for name, way := range map[string]struct {
		head           string
		chunked, waits bool
		status         int
		code           string
		size           int // 0: wireBody
	}{
		"chunked, waits":         {charge + te + expect, true, true, 413, "body_too_large", 0},
		"chunked, does not wait": {charge + te + expect, true, false, 413, "body_too_large", 0},
		"chunked":                {charge + te, true, false, 413, "body_too_large", 0},
		"chunked, closes":        {charge + te + closes, true, false, 413, "body_too_large", 0},
		"announced":              {charge + length, false, false, 413, "body_too_large", 0},
		"announced, expects":     {charge + length + expect, false, false, 413, "body_too_large", 0},
		"announced, closes":      {charge + length + closes, false, false, 413, "body_too_large", 0},
		"news, waits":            {post(webhooks, signed) + te + expect, true, true, 413, "body_too_large", 0},
		"news, announced":        {post(webhooks, signed) + length + closes, false, false, 413, "body_too_large", 0},
		"endpoint":               {"PUT /v1/webhook_endpoints/a HTTP/1.1\r\nHost: x\r\n" + media + mine + te + expect, true, true, 413, "body_too_large", 0},
		"no such key":            {post("/v1/charges", media+key+other) + te + closes, true, false, 401, "api_key_invalid", 0},
		"no signature":           {post(webhooks, "") + length + closes, false, false, 400, "signature_invalid", 0},
		"no idempotency key":     {post("/v1/charges", media+mine) + te + closes, true, false, 400, "idempotency_key_missing", 0},
		"small, no such key":     {post("/v1/charges", media+key+other) + "Content-Length: 32768\r\n" + closes, false, false, 401, "api_key_invalid", 32 << 10},
		"no such route":          {post("/v1/nothing", media) + length + closes, false, false, 404, "route_unknown", 0},
		"media type":             {post("/v1/charges", key+mine) + length + closes, false, false, 415, "media_type_unsupported", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			turns := make(chan struct{}, wireAtOnce)
			for range wireTries {
				all.Go(func() {
					turns <- struct{}{}
					defer func() { <-turns }()
					status, code, err := sendAll(addr, way.head, cmp.Or(way.size, wireBody), way.chunked, way.waits)
					if err != nil || status != way.status || code != way.code {
						t.Errorf("got %d %s, %v; want %d %s", status, code, err, way.status, way.code)
					}
				})
			}
			all.Wait()
		})
	}
}
