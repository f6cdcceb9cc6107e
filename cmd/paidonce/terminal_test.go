package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"paidonce/accounts"
	"paidonce/db"
	"paidonce/internal/dbtest"
)

// hostile is a text that others may send. It clears the screen (in two encodings), rings, sets the
// title, reverses and hides what follows, and makes lines and columns.
const hostile = "\x1b[2J\u009b2J\a\x1b]0;title\x07\u202eevil\u2066\u200b\u2028\U000e0041\x7f\r\n" +
	"ch_FORGED\tsucceeded"

// controlsIn returns the characters of a text that a terminal obeys.
func controlsIn(text []byte) (found []rune) {
	for _, r := range string(text) {
		if r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0 ||
			strings.ContainsRune("\u202e\u2066\u200b\u2028\U000e0041\ufffd", r)) {
			found = append(found, r)
		}
	}
	return found
}

// hostileDatabase returns a database in which every text that is not ours is hostile.
func hostileDatabase(t *testing.T) (url string) {
	url = dbtest.New(t)
	pool, err := db.Open(url, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	k, err := accounts.NewStore(pool).CreateKey(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params, resource_id, recovery_point, last_error, parked_at)
			VALUES ($1, 'k', 'op_1', $2, 1, decode(repeat('00', 32), 'hex'), $2, '{}', 'ch_1', 'started', $2, now())`,
		`INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params, resource_id, recovery_point, last_error, next_run_at)
			VALUES ($1, 'l', 'op_2', $2, 1, decode(repeat('00', 32), 'hex'), $2, '{}', 'ch_2', 'started', $2, now())`,
		`INSERT INTO operation_log (operation_id, event, attempt, actor, detail, reference) SELECT 'op_1', 'parked', 1, $2, $2, $2 WHERE $1 <> ''`,
		`INSERT INTO charges (id, account_id, operation_id, status, amount, currency, capture, livemode, description, failure_message, receipt_email, own_receipt)
			VALUES ('ch_1', $1, 'op_1', 'pending', 1, 'usd', true, false, $2, $2, $2, true)`,
		`INSERT INTO provider_events (id, type, object_id, livemode, payload, attempts, last_error, parked_at, next_run_at) SELECT 'evt_p', $2, $2, false, convert_to($2, 'UTF8'), 1, $2, now(), NULL WHERE $1 <> ''`,
		`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload, position) VALUES ('evt_1', $1, 'charge.succeeded', 'op_1', $2, convert_to(to_json($2::text)::text, 'UTF8'), 1)`,
		`INSERT INTO webhook_endpoints (account_id, id, url, enabled_events) SELECT $1, 'hook', $2, '{*}'`,
		`INSERT INTO deliveries (endpoint, event_id, position, object_id, state, attempts, last_attempt_at, last_status, last_body, last_error, finished_at, next_run_at)
			SELECT number, 'evt_1', 1, 'ch_1', 'dead', 1, now(), 500, convert_to($2, 'UTF8'), $2, now(), NULL FROM webhook_endpoints WHERE account_id = $1`,
		`INSERT INTO receipts (charge_id, account_id, event_id, taken_at, state, attempts, last_attempt_at, last_error, finished_at) VALUES ('ch_1', $1, 'evt_1', now(), 'refused', 1, now(), $2, now())`,
	} {
		if _, err := pool.Exec(t.Context(), sql, pgx.QueryExecModeExec, k.AccountID, hostile); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	return url
}

// Text of others has no effect on an operator's terminal: no list, table or JSON has a control
// character, and no line of its making.
func TestTerminalsAreNotCommanded(t *testing.T) {
	setEnv(t, "DATABASE_URL", hostileDatabase(t), "STRIPE_API_KEY", "sk_test_x")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Request-Id", "req_1")
		h, _ := json.Marshal(hostile)
		charge := `{"id":` + string(h) + `,"object":"charge","amount":1,"currency":` + string(h) +
			`,"status":` + string(h) + `,"created":1,"description":` + string(h) +
			`,"failure_message":` + string(h) + `}`
		switch {
		case strings.Contains(r.URL.Path, "ch_no"):
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w,
				`{"error":{"type":"invalid_request_error","code":"resource_missing","message":`+
					string(h)+`,"advice":"stop"}}`)
		case strings.HasPrefix(r.URL.Path, "/v1/charges/"):
			_, _ = io.WriteString(w, charge)
		case r.URL.Path == "/v1/charges":
			_, _ = io.WriteString(w,
				`{"object":"list","url":"/v1/charges","has_more":false,"data":[`+charge+`]}`)
		default:
			_, _ = io.WriteString(w,
				`{"object":"list","url":"/v1/events","has_more":false,"data":[]}`)
		}
	}))
	defer server.Close()
	t.Setenv("PAIDONCE_URL", server.URL)
	t.Setenv("PAIDONCE_API_KEY", "sk_x")
	for _, command := range []string{
		"ops list --all", "ops list --all --json", "ops show op_1", "ops show op_1 --json",
		"inbox list", "inbox list --json", "inbox show evt_p", "inbox show evt_p --json",
		"events list", "events list --json", "events show evt_1", "events show evt_1 --json",
		"receipts list", "receipts list --json",
		"charges list", "charges list --json", "charges get ch_1", "charges get ch_1 --json",
		"charges get ch_no", "events show " + hostile, "inbox show " + hostile, "help " + hostile,
	} {
		var out, errs bytes.Buffer
		name, rest, _ := strings.Cut(command, " ")
		args := append([]string{name}, strings.Fields(rest)...)
		if strings.HasSuffix(command, hostile) {
			args = append(strings.Fields(strings.TrimSuffix(command, hostile)), hostile)
		}
		run(args, &out, &errs)
		if out.Len()+errs.Len() < 20 {
			t.Errorf("%q: says next to nothing: %s%s", command, &out, &errs)
		}
		for _, said := range []*bytes.Buffer{&out, &errs} {
			if found := controlsIn(said.Bytes()); len(found) > 0 {
				t.Errorf("%q: has %q:\n%q", command, found, said)
			}
			// the stored bytes follow, with their lines and tabs
			if command == "inbox show evt_p" {
				break
			}
			for line := range strings.Lines(said.String()) {
				if strings.HasPrefix(line, "ch_FORGED") || strings.Contains(line, "\t") {
					t.Errorf("%q: has a line of a stranger's:\n%s", command, said)
				}
			}
		}
		if strings.HasSuffix(command, "--json") && !holds(t, out.Bytes(), hostile) {
			t.Errorf("%q: JSON has not the very text: %s%s", command, &out, &errs)
		}
	}
}

// holds reports whether a JSON text has the given text somewhere, once it is decoded.
func holds(t *testing.T, text []byte, want string) bool {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Errorf("%v: %s", err, text)
		return false
	}
	var in func(v any) bool
	in = func(v any) bool {
		switch v := v.(type) {
		case string:
			return v == want
		case []any:
			for _, one := range v {
				if in(one) {
					return true
				}
			}
		case map[string]any:
			for _, one := range v {
				if in(one) {
					return true
				}
			}
		}
		return false
	}
	return in(v)
}

func TestLogsAreNotCommanded(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		old := os.Stderr
		os.Stderr = w
		setEnv(t, "PAIDONCE_LOG_FORMAT", format)
		cfg, err := loadConfig(0)
		if err != nil {
			t.Fatal(err)
		}
		cfg.logger().Log(context.Background(), slog.LevelError, "it "+hostile, "cause", hostile)
		os.Stderr = old
		_ = w.Close()
		said, _ := io.ReadAll(r)
		if found := controlsIn(said); len(found) > 0 || bytes.Count(said, []byte("\n")) != 1 {
			t.Errorf("%s: has %q: %q", format, found, said)
		}
		if format == "json" && !holds(t, said, hostile) {
			t.Errorf("JSON has not the very text: %s", said)
		}
	}
}

func TestShown(t *testing.T) {
	for text, want := range map[string]string{"plain": "plain",
		"Zoë, 東京 🎉 a\u00a0b": "Zoë, 東京 🎉 a\u00a0b", "a\x00b": "a b", "\x9b2J": "\ufffd2J",
		"a\tb\nc": "a b c", "\u202ex": " x"} {
		if got := oneLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var b bytes.Buffer
	if n, err := (plainWriter{&b}).Write([]byte("a\x1b[31m\nb\tc\u202e\r")); n != 14 ||
		err != nil || b.String() != "a [31m\nb\tc  " {
		t.Errorf("%d, %v, %q", n, err, b.String())
	}
	if got := string(plainJSON([]byte("{\"a\":\"\u202e\U000e0041\x7f\u009b東\"}\n"))); got != `{"a":"\u202e\udb40\udc41\u007f\u009b東"}`+"\n" {
		t.Error(got)
	}
}
