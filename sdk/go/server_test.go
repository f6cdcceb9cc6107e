package paidonce

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

var twenty = ChargeParams{
	Amount: 2000, Currency: "usd", Source: Ptr("tok_visa"), Metadata: map[string]string{
		"b": "1", "a": "2",
	},
}

const chargeJSON = `{"id":"ch_1","object":"charge"}`

type request struct{ key, body string }

// reply is an answer of the server; its status 0 is a lost connection.
type reply struct {
	status   int
	body     string
	replayed bool
}

// refusal is an answer of Paidonce's that is an error.
func refusal(status int, kind, code, advice string) reply {
	return reply{
		status: status,
		body: fmt.Sprintf(
			`{"error":{"type":%q,"code":%q,"message":"m","advice":%q,"request_id":"r"}}`, kind,
			code, advice),
	}
}

// server answers in turn, the last for ever. It keeps what was sent.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	sent    []request
	paths   []string
	answers []reply
	header  http.Header
}

func serve(t *testing.T, statuses ...int) *server {
	t.Helper()
	var answers []reply
	for _, status := range statuses {
		a := reply{status: status, body: chargeJSON}
		if status >= 300 {
			a = refusal(status, "api_error", "", "retry_same_key")
		}
		answers = append(answers, a)
	}
	return serveAll(t, answers...)
}

func serveAll(t *testing.T, answers ...reply) *server {
	t.Helper()
	s := &server{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent = append(s.sent, request{r.Header.Get("Idempotency-Key"), string(body)})
		s.paths = append(s.paths, r.Method+" "+r.RequestURI)
		a := s.answers[0]
		if len(s.answers) > 1 {
			s.answers = s.answers[1:]
		}
		if a.status == 0 {
			panic(http.ErrAbortHandler)
		}
		for name, values := range s.header {
			w.Header()[name] = values
		}
		if a.replayed {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) client(t *testing.T, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{
		BaseURL: s.URL, APIKey: "sk_x", Store: FileStore(t.TempDir()), Deadline: 5 * time.Second,
	}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
