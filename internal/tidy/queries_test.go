package tidy

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The conditions that many statements of db/query share. Each stands here once, and everywhere else
// it is the same text; $key stands for @key, with or without its type, and for x.key.
const (
	// fence lets nobody write an operation but whoever holds its lease, at the point that they know
	// of.
	fence = `k.account_id = $account_id AND k.key = $key AND k.operation_id = $operation_id
		AND k.lease_token = $lease_token AND k.recovery_point = $recovery_point AND k.finished_at IS NULL`
	// vouched holds while the database's history is one that somebody vouched for.
	vouched = `EXISTS (SELECT FROM installation i WHERE i.forked_at IS NULL
		AND (i.timeline = '' OR i.timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)))`
	// keyHash finds a recovered key, of which only the hash is known. $ is whoever has the key.
	keyHash = `r.account_id = $account_id AND r.key_hash = sha256(convert_to($account_id || ' ' || $key, 'UTF8'))`
)

// leaseWrites are the statements that a driver writes with, by name.
var leaseWrites = []string{
	"ChargeSettle", "KeyAdvance", "KeyAdvanced", "KeyFinish", "KeyPark", "KeyRelease",
}

// otherWrites are the other statements that write idempotency_keys, with what guards them instead.
var otherWrites = map[string]string{
	"ChargeClaim":  "inserts",
	"KeyClaim":     "inserts",
	"KeyForget":    "deletes what is finished",
	"KeyLeaseDue":  "takes a lease that is free or stale",
	"KeyOutlived":  "deletes what is finished",
	"KeyOvertaken": "takes the lease away: the key stands for another operation",
	"KeyRecovered": "inserts",
	"KeySweep":     "deletes what is finished",
	"KeyTakeOver":  "takes a lease that is free or stale: compare-and-swap",
	"KeyUnpark":    "changes what is parked, which nobody drives",
	"KeysReached":  "changes what is known of the provider, and no lease",
}

// claiming are the statements that take a key or a lease: not while the history is in doubt.
var claiming = []string{"ChargeClaim", "KeyClaim", "KeyLeaseDue", "KeyTakeOver"}

type query struct{ name, file, text string }

// queries reads the statements of db/query.
func queries(t *testing.T) []query {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "db", "query", "*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	var all []query
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "\n-- name: ")[1:] {
			name, rest, _ := strings.Cut(part, " ")
			all = append(all, query{
				name: name, file: strings.TrimSuffix(filepath.Base(path), ".sql"), text: rest,
			})
		}
	}
	if len(all) < 100 {
		t.Fatalf("only %d statements were read", len(all))
	}
	return all
}

var (
	sqlComment = regexp.MustCompile(`--[^\n]*`)
	sqlName    = regexp.MustCompile(`(?:@|\bx\.)(\w+)(?:::text)?`)
	sqlOwner   = regexp.MustCompile(`\b[akx]\.(account_id|key)\b`)
)

// plain is a statement in one line, without comments, and with $name for whatever a name is given
// by.
func plain(sql string) string {
	sql = strings.Join(strings.Fields(sqlComment.ReplaceAllString(sql, "")), " ")
	return strings.ReplaceAll(strings.ReplaceAll(sqlName.ReplaceAllString(sql, "$$$1"), "( ", "("),
		" )", ")")
}

// TestSharedConditionsAreTheSame checks that a condition which is written several times is the same
// everywhere.
func TestSharedConditionsAreTheSame(t *testing.T) {
	writes := regexp.MustCompile(`(?:UPDATE|INSERT INTO|DELETE FROM) idempotency_keys\b`)
	for _, q := range queries(t) {
		sql := plain(q.text)
		if slices.Contains(leaseWrites, q.name) {
			if strings.Count(sql, plain(fence)) != 1 {
				t.Errorf("%s does not have the fence:\n%s", q.name, plain(fence))
			}
		} else if writes.MatchString(sql) && otherWrites[q.name] == "" {
			t.Errorf("%s writes idempotency_keys without the fence", q.name)
		}
		if n := strings.Count(sql, plain(vouched)); n != strings.Count(sql,
			"i.forked_at IS NULL") ||
			slices.Contains(claiming, q.name) && n == 0 {
			t.Errorf("%s does not look whether the history is vouched for as all others do:\n%s",
				q.name, plain(vouched))
		}
		sql = sqlOwner.ReplaceAllString(sql, "$$$1")
		if strings.Count(sql, plain(keyHash)) != strings.Count(sql, "sha256(") {
			t.Errorf("%s hashes a key in its own way:\n%s", q.name, plain(keyHash))
		}
	}
}

func TestListsOfSharedConditionsAreTrue(t *testing.T) {
	there := map[string]bool{}
	for _, q := range queries(t) {
		there[q.name] = true
	}
	for _, name := range slices.Concat(leaseWrites, claiming,
		slices.Collect(maps.Keys(otherWrites))) {
		if !there[name] {
			t.Errorf("there is no statement %s", name)
		}
	}
}

// TestQueriesAreFiled checks that each table has one file, named after it, with the statements in
// the order of their names.
func TestQueriesAreFiled(t *testing.T) {
	first := regexp.MustCompile(`(?:UPDATE|INTO|DELETE FROM|FROM|JOIN) \(*(\w+)`)
	all := queries(t)
	for i, q := range all {
		if i > 0 && all[i-1].file == q.file && all[i-1].name >= q.name {
			t.Errorf("%s.sql: %s stands after %s", q.file, q.name, all[i-1].name)
		}
		tables := first.FindAllStringSubmatch(plain(q.text), -1)
		if len(tables) > 0 && !slices.ContainsFunc(tables, func(m []string) bool {
			return m[1] == q.file
		}) {
			t.Errorf("%s.sql: %s has nothing to do with that table", q.file, q.name)
		}
	}
}

// planned matches what is written for the planner alone. docs/decisions/0019-planner.md says why.
var planned = []*regexp.Regexp{
	regexp.MustCompile(`[^<]> ''`),
	regexp.MustCompile(`\(\w*\.?account_id = [@\w.]+\) IS TRUE`),
	regexp.MustCompile(`\(SELECT clock_timestamp\(\)`),
	regexp.MustCompile(`coalesce\(\S+, ''\) = ''`),
	regexp.MustCompile(`coalesce\(\S+ = \S+, false\)`),
	regexp.MustCompile(`OFFSET 0`),
	regexp.MustCompile(`ANY \(ARRAY\(`),
	regexp.MustCompile(`\(c\.status (?:=|<>) 'failed'\) = `),
	regexp.MustCompile(`\(o\.\w+, o\.position\) [<>] \(@\w+::text, @`),
}

// marked are further lines with the mark, of which only the place says what they are.
var marked = []*regexp.Regexp{
	regexp.MustCompile(`^\), waiting AS \( --`),
	regexp.MustCompile(`k\.finished_at IS NULL --`),
	regexp.MustCompile(`LIMIT 1\)? ?c? --`),
	regexp.MustCompile(`LIMIT 1\), false\)`),
	regexp.MustCompile(`coalesce\(o\.position, 0\) = 0 --`),
	regexp.MustCompile(`b\.state = 'pending' --`),
	regexp.MustCompile(`d\.next_run_at >= '-infinity' --`),
}

// TestPlannerMarks checks that such a condition is marked, so that whoever wants to simplify it
// finds the reason first.
func TestPlannerMarks(t *testing.T) {
	matches := func(line string) func(*regexp.Regexp) bool {
		return func(p *regexp.Regexp) bool { return p.MatchString(line) }
	}
	marks := 0
	for _, q := range queries(t) {
		for line := range strings.Lines(q.text) {
			line = strings.TrimRight(line, "\n")
			has, spell := strings.HasSuffix(line, " -- planner"),
				slices.ContainsFunc(planned, matches(line))
			if has {
				marks++
			}
			if spell && !has {
				t.Errorf("%s: no mark `-- planner`: %s", q.name, line)
			}
			if has && !spell && !slices.ContainsFunc(marked, matches(line)) {
				t.Errorf("%s: a mark where nothing is written for the planner: %s", q.name, line)
			}
		}
	}
	if marks < 30 {
		t.Errorf("only %d marks", marks)
	}
}
