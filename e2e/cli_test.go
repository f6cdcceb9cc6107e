package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// empty is a world with a database that has no tables.
func empty(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dbURL: host.create(t, false), names: map[string]int{}}
	w.env = append([]string{"DATABASE_URL=" + w.dbURL, "STRIPE_API_KEY=sk_test_x"}, fast...)
	return w
}

func TestMigrateManyAtOnce(t *testing.T) {
	t.Parallel()
	for range 3 {
		w := empty(t)
		results := make([]result, 5)
		together(len(results), func(i int) { results[i] = w.run(nil, "migrate") })
		applied := 0
		for _, r := range results {
			if r.code != 0 || r.stderr != "" {
				t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			applied += strings.Count(r.stdout, "applied ")
		}
		status := w.must("migrate", "status")
		if lines := strings.Count(status.stdout, "\n"); lines == 0 || lines != applied ||
			strings.Contains(status.stdout, "pending") {
			t.Errorf("%d migrations were applied in all; now the status is\n%s", applied,
				status.stdout)
		}
		twice := querySQL[int](t, w.dbURL, "SELECT count(*) FROM (SELECT version_id FROM "+
			"paidonce_db_version GROUP BY 1 HAVING count(*) > 1) x")
		if twice != 0 {
			t.Errorf("%d versions are recorded more than once", twice)
		}
		if r := w.must("migrate", "up"); !strings.Contains(r.stdout, "current") {
			t.Errorf("once more: %s", r.stdout)
		}
	}
}

func TestUnmigratedDatabase(t *testing.T) {
	t.Parallel()
	w := empty(t)
	if r := w.must("migrate", "status"); !strings.Contains(r.stdout, "pending") {
		t.Errorf("status: %s", r.stdout)
	}
	for _, args := range [][]string{{"serve"}, {"reconcile"}, {"apikeys", "list"}} {
		r := w.run(nil, args...)
		if r.code != 1 || strings.Count(r.stderr, "\n") != 1 ||
			!strings.Contains(r.stderr, "paidonce migrate") || r.stdout != "" {
			t.Errorf("%v: exit code %d, want 1 and one line that says what to do\n%s%s", args,
				r.code, r.stdout, r.stderr)
		}
	}
}

func TestConfigurationProblemsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	w := &world{t: t}
	cases := []struct {
		name string
		env  []string
		want []string
	}{
		{"nothing set", nil, []string{"DATABASE_URL", "STRIPE_API_KEY"}},
		{"many wrong", []string{
			"DATABASE_URL=postgres://u:hushDatabase@host:port/x",
			"STRIPE_API_KEY=sk_live_hushStripe", "STRIPE_API_BASE=ftp://u:hushBase@x",
			"PAIDONCE_LISTEN=nowhere", "PAIDONCE_WORKERS=relay,typo", "PAIDONCE_DB_MAX_CONNS=many",
			"PAIDONCE_PROVIDER_TIMEOUT=20", "PAIDONCE_KEY_TTL=-1h",
			"PAIDONCE_LOOKUP_MISSES=0", "PAIDONCE_INSTANCE=a b", "PAIDONCE_MAX_BODY=huge",
			"PAIDONCE_RATE_LIMIT=-1", "PAIDONCE_LOG_LEVEL=loud", "PAIDONCE_LOG_FORMAT=xml",
			"PAIDONCE_NATS_URL=http://u:hushNATS@nats", "PAIDONCE_KAFKA_BROKERS=kafka",
			"PAIDONCE_STALE_AFTER=1s",
		}, []string{
			"DATABASE_URL", "STRIPE_API_BASE", "PAIDONCE_LISTEN", "PAIDONCE_WORKERS",
			"PAIDONCE_DB_MAX_CONNS", "PAIDONCE_PROVIDER_TIMEOUT",
			"PAIDONCE_KEY_TTL", "PAIDONCE_LOOKUP_MISSES", "PAIDONCE_INSTANCE", "PAIDONCE_MAX_BODY",
			"PAIDONCE_RATE_LIMIT", "PAIDONCE_LOG_LEVEL", "PAIDONCE_LOG_FORMAT",
			"PAIDONCE_NATS_URL", "PAIDONCE_KAFKA_BROKERS", "PAIDONCE_STALE_AFTER",
		}},
		{"lease shorter than a run", []string{
			"DATABASE_URL=postgres://h/x", "STRIPE_API_KEY=sk_test_x",
			"PAIDONCE_PROVIDER_TIMEOUT=20s", "PAIDONCE_STALE_AFTER=20s",
		},
			[]string{"PAIDONCE_STALE_AFTER"}},
	}
	for _, c := range cases {
		r := w.run(c.env, "serve")
		if r.code != 1 || strings.Contains(r.stderr, "hush") {
			t.Errorf("%s: exit code %d, want 1 and no secrets\n%s", c.name, r.code, r.stderr)
		}
		told := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^  ([A-Z_]+): \S`).FindAllStringSubmatch(r.stderr,
			-1) {
			told[m[1]] = true
		}
		if got := slices.Sorted(maps.Keys(told)); !slices.Equal(got,
			slices.Sorted(slices.Values(c.want))) {
			t.Errorf("%s: told are %v, want %v\n%s", c.name, got, c.want, r.stderr)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	w := empty(t)
	for _, args := range [][]string{
		{"serv"}, {"serve", "now"}, {"serve", "--fast"}, {"migrate", "down"}, {"apikeys", "create"},
		{"apikeys", "revoke"}, {"apikeys", "frob"},
		{"reconcile", "--limit", "0"}, {"reconcile", "--limit", "x"}, {"stripesim", "--nope"},
		{"dev", "x"},
		{"events", "list", "--type", "nope"}, {"help", "nope"}, {"help", "ops", "nope"},
		{"help", "ops", "show", "x"}, {"nope", "--help"},
	} {
		r := w.run(nil, args...)
		if r.code != 2 || strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
			t.Errorf("%v: exit code %d, want 2 and one line on stderr\n%s%s", args, r.code,
				r.stdout, r.stderr)
		}
	}
}

// What a command line names and is not there is told: an empty list would look like nothing
// happened.
func TestWhatIsNamedHasToExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.newKey("other").AccountID
	for _, list := range []string{"events", "receipts", "apikeys"} {
		for _, account := range []string{"other", id} {
			if r := w.must(list, "list", "--account", account); list == "apikeys" &&
				(strings.Count(r.stdout, "\n") != 2 || !strings.Contains(r.stdout, "  other  ")) {
				t.Errorf("the keys of %s: %s", account, r.stdout)
			}
		}
		if r := w.run(nil, list, "list", "--account", "nope"); r.code != 1 ||
			r.stderr != "paidonce: --account nope: no account has this id or name\n" ||
			r.stdout != "" {
			t.Errorf("%s: %+v", list, r)
		}
	}
	for _, args := range [][]string{{"events", "show", "evt_no"}, {"events", "resend", "evt_no"}} {
		if r := w.run(nil, args...); r.code != 1 ||
			!strings.HasPrefix(r.stderr, "paidonce: evt_no: ") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if r := w.run(nil, "charges", "create", "--source", "tok_visa"); r.code != 2 ||
		!strings.Contains(r.stderr, "--amount") {
		t.Errorf("charges create: %+v", r)
	}
	// A setting that is misspelt is told, and the work is done.
	if r := w.run([]string{"PAIDONCE_RATELIMIT=5"}, "reconcile"); r.code != 0 ||
		strings.Count(r.stderr, "PAIDONCE_RATE_LIMIT meant?") != 1 {
		t.Errorf("reconcile: %+v", r)
	}
}

// A simulator that would not do what it is asked to does not start, and says which flag it is.
func TestStripeSimFlags(t *testing.T) {
	t.Parallel()
	w := &world{t: t}
	for _, args := range [][]string{
		{"--listen", "nowhere"}, {"--listen", "127.0.0.1:99999"}, {"--listen", "127.0.0.1"},
		{"--key-window", "0s"}, {"--key-window", "-1h"}, {"--search-lag", "-1s"},
		{"--webhook-url", "127.0.0.1:8080"}, {"--webhook-url", "ftp://x/"}, {"--webhook-url",
			"http:///path"}, {"--webhook-secret", ""}, {"--webhook-secret", "a,,b"},
	} {
		r := w.run(nil, append([]string{"stripesim"}, args...)...)
		if r.code != 2 || strings.Count(r.stderr, "\n") != 1 ||
			!strings.Contains(r.stderr, args[0]+" must") || r.stdout != "" {
			t.Errorf("%v: exit code %d, want 2 and one line that names the flag\n%s%s", args,
				r.code, r.stdout, r.stderr)
		}
	}
}

// The driver tells of each address on a line of its own.
func TestDatabaseErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	w := &world{t: t}
	for _, args := range [][]string{{"apikeys", "list"}, {"reconcile"}, {"migrate"}} {
		r := w.run([]string{"DATABASE_URL=postgres://u:hushDatabase@127.0.0.1:1,127.0.0.1:2/x",
			"STRIPE_API_KEY=sk_test_x"}, args...)
		if r.code != 1 || strings.Count(r.stderr, "\n") != 1 ||
			!strings.Contains(r.stderr, "127.0.0.1:2") || strings.Contains(r.stderr, "hush") {
			t.Errorf("%v: exit code %d, want 1 and one line\n%s", args, r.code, r.stderr)
		}
	}
}

// What operators' programs read of an operation has a state, whatever became of it; and what ends
// soon says nothing meanwhile.
func TestShownOperations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(w.serve())
	w.sim.arm(1, fault{"type": "drop_after"})
	c.Charge("k", twenty) // two attempts, so that there is a log that outlives the key
	charge := c.Charge("k", twenty).ID()
	var key struct{ Operation string }
	c.Get("/v1/idempotency_keys/k").JSON(&key)
	state := func(id string) (shown struct{ Operation, State, Status string }) {
		if err := json.Unmarshal([]byte(w.must("ops", "show", id, "--json").stdout), &shown); err != nil {
			t.Fatal(err)
		}
		return shown
	}
	if s := state(charge); s.State != "finished" || s.Operation != key.Operation ||
		s.Status != "completed" {
		t.Errorf("finished: %+v", s)
	}
	if r := w.must("audit", "--since", "1h"); r.stderr != "" ||
		!strings.Contains(r.stdout, "0 differences") {
		t.Errorf("audit: %+v", r)
	}
	execSQL(t, w.dbURL, "UPDATE idempotency_keys SET expires_at = now() - interval '1 hour'")
	w.must("sweep")
	if s := state(key.Operation); s.State != "swept" || s.Operation != key.Operation {
		t.Errorf("swept: %+v", s)
	}
}

var subcommands = regexp.MustCompile(`(?m)^  ([a-z]+) +\S`)

// TestHelp walks through all commands there are.
func TestHelp(t *testing.T) {
	t.Parallel()
	w := &world{t: t}
	var walk func(path []string)
	seen := map[string]bool{}
	walk = func(path []string) {
		r := w.must(append(path, "--help")...)
		seen[strings.Join(path, " ")] = true
		if !strings.Contains(r.stdout, "Examples:\n") || !strings.Contains(r.stdout, "paidonce") ||
			r.stderr != "" {
			t.Errorf("%v --help has no examples:\n%s%s", path, r.stdout, r.stderr)
		}
		_, list, found := strings.Cut(r.stdout, "Available Commands:\n")
		if !found {
			return
		}
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range subcommands.FindAllStringSubmatch(list, -1) {
			if m[1] != "help" {
				walk(append(slices.Clone(path), m[1]))
			}
		}
	}
	walk(nil)
	for _, want := range []string{"dev", "serve", "migrate up", "migrate status", "reconcile",
		"apikeys create", "apikeys list", "apikeys revoke", "stripesim"} {
		if !seen[want] {
			t.Errorf("%s is missing in the help: %v", want, slices.Sorted(maps.Keys(seen)))
		}
	}
}

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.must("apikeys", "create", "--account", "shop", "--json")
	var fields map[string]string
	if err := json.Unmarshal([]byte(r.stdout), &fields); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(fields)); !slices.Equal(got,
		[]string{"account", "account_id", "api_key", "id"}) {
		t.Errorf("create --json prints %v", got)
	}
	other := w.newKey("other")
	if fields["account"] != "shop" || other.AccountID == fields["account_id"] {
		t.Errorf("%v and %+v", fields, other)
	}
	plain := w.must("apikeys", "create", "--account", "shop").stdout
	secrets := []string{
		w.apiKey, fields["api_key"], other.APIKey, regexp.MustCompile(`sk_\w+`).FindString(plain),
	}
	for _, args := range [][]string{{"apikeys", "list"}, {"apikeys", "list", "--json"},
		{"apikeys", "list", "--account", "shop"}} {
		list := w.must(args...).stdout
		if !strings.Contains(list, fields["id"]) ||
			strings.Contains(list, other.ID) != (len(args) < 4) {
			t.Errorf("%v:\n%s", args, list)
		}
		for _, s := range secrets {
			if s == "" || strings.Contains(list, s) {
				t.Errorf("%v shows the key %q", args, s)
			}
		}
	}
	reader := w.must("apikeys", "create", "--account", "shop", "--read-only").stdout
	list := w.must("apikeys", "list", "--account", "shop").stdout
	if !strings.Contains(reader, "Read-only API key of shop") || !strings.Contains(reader, "\nrk_") ||
		!regexp.MustCompile(`rk_….{4}\s+read `).MatchString(list) ||
		!regexp.MustCompile(`sk_….{4}\s+everything `).MatchString(list) {
		t.Errorf("a read-only key: %s\n%s", reader, list)
	}
	var listed []struct {
		ReadOnly *bool `json:"read_only"`
	}
	all := w.must("apikeys", "list", "--json", "--account", "shop").stdout
	if err := json.Unmarshal([]byte(all), &listed); err != nil || len(listed) < 3 ||
		listed[0].ReadOnly == nil || *listed[0].ReadOnly || !*listed[len(listed)-1].ReadOnly {
		t.Errorf("%v: %s", err, all)
	}
	if r := w.run(nil, "apikeys", "revoke", "key_unknown"); r.code != 1 ||
		strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("revoking an unknown key: exit code %d %s", r.code, r.stderr)
	}
	if stored := querySQL[int](t, w.dbURL,
		"SELECT count(*) FROM api_keys WHERE api_keys::text LIKE '%' || $1 || '%'",
		other.APIKey); stored != 0 {
		t.Error("the key itself is stored")
	}
}

// TestUnwritableOutput: what a command is asked to show and cannot, such as on a full disk, is exit
// code 1: a key that is shown once is lost then.
func TestUnwritableOutput(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full here")
	}
	t.Cleanup(func() { _ = full.Close() })
	w := newWorld(t)
	execSQL(t, w.dbURL,
		`INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload) VALUES ('evt_1', 'acct_1', 'charge.succeeded', 'op_1', 'ch_1', '{}')`)
	execSQL(t, w.dbURL,
		`INSERT INTO provider_events (id, type, object_id, livemode, payload) VALUES ('evt_1', 'charge.succeeded', 'ch_1', false, '{}')`)
	for _, args := range [][]string{
		{"apikeys", "create", "--account", "shop"}, {"apikeys", "create", "--account", "shop",
			"--json"}, {"apikeys", "list"}, {"events", "list"}, {"events", "show", "evt_1"},
		{"inbox", "list"}, {"inbox", "show", "evt_1"}, {"ops", "list"}, {"receipts", "list"},
	} {
		var stderr strings.Builder
		cmd := w.command(nil, args...)
		cmd.Stdout, cmd.Stderr = full, &stderr
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 1 ||
			strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v: exit code %d, %q", args, code, stderr.String())
		}
	}
}
