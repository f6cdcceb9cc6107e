package tidy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMigrationsKeepNobodyWaiting checks that a migration can run beside servers of the previous
// release, on tables of millions of rows, during a dump (docs/architecture.md, "Changing the
// schema").
func TestMigrationsKeepNobodyWaiting(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "db", "migrations", "*.sql"))
	if err != nil || len(files) < 12 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range migrationProblems(string(text)) {
			t.Errorf("%s: %s", filepath.Base(file), problem)
		}
	}
}

func TestMigrationsRule(t *testing.T) {
	const loose = "-- +goose NO TRANSACTION\n-- +goose Up\n"
	for sql, want := range map[string]string{
		"ALTER TABLE charges ADD COLUMN a integer NOT NULL DEFAULT 0;": "",
		"CREATE TABLE a (b integer CHECK (b > 0));\nCREATE INDEX i ON a (b);\n" +
			"INSERT INTO a VALUES (1);": "",
		"ALTER TABLE charges ADD COLUMN a text REFERENCES accounts (id);":         "ADD COLUMN",
		"ALTER TABLE charges ADD COLUMN a integer CHECK (a > 0);":                 "ADD COLUMN",
		"ALTER TABLE charges ADD COLUMN a timestamptz DEFAULT clock_timestamp();": "ADD COLUMN",
		"ALTER TABLE charges ADD COLUMN a uuid DEFAULT gen_random_uuid();":        "ADD COLUMN",
		"ALTER TABLE charges ADD COLUMN a bigint GENERATED ALWAYS AS IDENTITY;":   "ADD COLUMN",
		"ALTER TABLE charges ADD CONSTRAINT c CHECK (amount > 0);":                "NOT VALID",
		"ALTER TABLE charges ADD CONSTRAINT c UNIQUE (amount);":                   "NOT VALID",
		"ALTER TABLE charges ADD CONSTRAINT c CHECK (amount > 0) NOT VALID;":      "",
		"ALTER TABLE charges ADD CONSTRAINT c CHECK (amount > 0) NOT VALID;\n" +
			"ALTER TABLE charges VALIDATE CONSTRAINT c;": "VALIDATE",
		"ALTER TABLE charges ALTER COLUMN amount SET NOT NULL;":                                "reads or rewrites",
		"ALTER TABLE charges ALTER COLUMN amount TYPE numeric;":                                "reads or rewrites",
		"ALTER TABLE charges DROP COLUMN amount;":                                              "release before",
		"ALTER TABLE charges RENAME COLUMN amount TO sum;":                                     "release before",
		"DROP TABLE charges;":                                                                  "release before",
		"UPDATE charges SET amount = 1;":                                                       "all rows",
		"DELETE FROM charges;":                                                                 "all rows",
		"LOCK TABLE charges;":                                                                  "reads or rewrites",
		"CREATE INDEX i ON charges (amount);":                                                  "CONCURRENTLY",
		"CREATE UNIQUE INDEX i ON charges (amount);":                                           "CONCURRENTLY",
		"ALTER TABLE charges ADD COLUMN a integer;\nALTER TABLE refunds ADD COLUMN a integer;": "one table",
		"SET lock_timeout = '5min';":                                                           "only where",
		loose + "ALTER TABLE charges ADD COLUMN a integer;":                                    "repeated",
		loose + "CREATE TABLE a (b integer);":                                                  "repeated",
		loose + "ALTER TABLE charges ADD COLUMN IF NOT EXISTS a integer;\n" +
			"ALTER TABLE refunds ADD COLUMN IF NOT EXISTS a integer;": "",
		loose + "SET lock_timeout = '5min';\nCREATE INDEX CONCURRENTLY i ON charges (amount);": "left behind",
		loose + "DROP INDEX CONCURRENTLY IF EXISTS i;\n" +
			"CREATE INDEX CONCURRENTLY i ON charges (amount);": "lock_timeout",
		loose + "SET lock_timeout = '5min';\nDROP INDEX CONCURRENTLY IF EXISTS i;\n" +
			"CREATE INDEX CONCURRENTLY i ON charges (amount);": "",
		loose + "SET lock_timeout = '5min';\n" +
			"ALTER TABLE charges ADD COLUMN IF NOT EXISTS a integer;": "only where",
		loose + "SET lock_timeout = '5min';\nALTER TABLE charges VALIDATE CONSTRAINT c;": "",
		loose + "-- +goose StatementBegin\nDO $$ BEGIN LOOP\nUPDATE charges SET amount = 1;\n" +
			"COMMIT; END LOOP; END $$;\n-- +goose StatementEnd": "",
		loose + "-- +goose StatementBegin\nDO $$ BEGIN\nUPDATE charges SET amount = 1;\nEND $$;\n" +
			"-- +goose StatementEnd": "COMMIT",
	} {
		if !strings.HasPrefix(sql, "--") {
			sql = "-- +goose Up\n" + sql
		}
		got := strings.Join(migrationProblems(sql+"\n-- +goose Down\nDROP TABLE a;\n"), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s\nis told %q, want %q", sql, got, want)
		}
	}
}

var (
	newTable = regexp.MustCompile(`^CREATE (?:TEMP )?TABLE (?:IF NOT EXISTS )?(\w+)`)
	newIndex = regexp.MustCompile(
		`^CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?(?:IF NOT EXISTS )?(\w+) ON (\w+)`)
	alterTable   = regexp.MustCompile(`^ALTER TABLE (?:ONLY )?(\w+)`)
	withoutTable = regexp.MustCompile(
		`^(LOCK|TRUNCATE|CLUSTER|VACUUM|REINDEX|REFRESH)\b|\bSET NOT NULL\b|\bALTER (COLUMN )?\w+ (SET DATA )?TYPE\b|\bSET (LOGGED|UNLOGGED|TABLESPACE)\b`)
	forgets = regexp.MustCompile(`^(DROP TABLE|DROP TYPE|DROP VIEW)\b|\bDROP COLUMN\b|\bRENAME\b`)
	// A constant default is kept in the catalog; what differs from row to row rewrites the table,
	// and a constraint reads it.
	heavyColumn = regexp.MustCompile(
		`ADD COLUMN (?:IF NOT EXISTS )?[^;,]*?\b(REFERENCES|CHECK|UNIQUE|PRIMARY KEY|GENERATED|DEFAULT \w+\()`)
	newConstraint = regexp.MustCompile(`ADD CONSTRAINT [^;]*`)
	repeatable    = regexp.MustCompile(
		`IF (NOT )?EXISTS|ON CONFLICT DO NOTHING|^COMMENT ON|^SET lock_timeout|CONCURRENTLY|VALIDATE CONSTRAINT|^DO\b|DROP NOT NULL|SET DEFAULT|SET \(`)
	patient = regexp.MustCompile(`CONCURRENTLY|VALIDATE CONSTRAINT`)
)

// migrationProblems returns what in a migration's first half would keep others waiting, or could
// not be run again.
func migrationProblems(text string) (problems []string) {
	up, _, _ := strings.Cut(text, "-- +goose Down")
	m := migration{loose: strings.Contains(up, "-- +goose NO TRANSACTION")}
	for _, s := range statements(up) {
		m.check(s)
	}
	if len(m.altered) > 1 && !m.loose {
		m.tell("", "takes more than one table for itself in a transaction: whoever waits for the "+
			"first waits for both; one table a migration, or NO TRANSACTION")
	}
	return m.problems
}

type migration struct {
	loose, slow   bool // without a transaction; after SET lock_timeout
	made, altered []string
	droppedBefore []string
	problems      []string
}

func (m *migration) tell(statement, problem string) {
	m.problems = append(m.problems,
		strings.TrimSpace(problem+": "+statement[:min(len(statement), 80)]))
}

func (m *migration) check(s string) {
	if found := newTable.FindStringSubmatch(s); found != nil {
		m.made = append(m.made, found[1])
	}
	found := alterTable.FindStringSubmatch(s)
	if found != nil && slices.Contains(m.made, found[1]) {
		return
	}
	if found != nil && !patient.MatchString(s) && !slices.Contains(m.altered, found[1]) {
		m.altered = append(m.altered, found[1])
	}
	if strings.HasPrefix(s, "DROP INDEX CONCURRENTLY IF EXISTS ") {
		m.droppedBefore = append(m.droppedBefore,
			strings.TrimPrefix(s, "DROP INDEX CONCURRENTLY IF EXISTS "))
	}
	m.checkIndex(s)
	switch {
	case withoutTable.MatchString(s):
		m.tell(s, "reads or rewrites a table while nobody else gets to it; for NOT NULL: a CHECK "+
			"that is NOT VALID, and VALIDATE it")
	case forgets.MatchString(s):
		m.tell(s, "servers of the release before still use it")
	case strings.HasPrefix(s, "UPDATE "), strings.HasPrefix(s, "DELETE "):
		m.tell(s, "holds all rows at once; DO in steps, with a COMMIT after each")
	case strings.HasPrefix(s, "DO ") && regexp.MustCompile(`\b(UPDATE|DELETE)\b`).MatchString(s) &&
		!strings.Contains(s, "COMMIT;"):
		m.tell(s, "holds all rows at once; steps need a COMMIT after each")
	case heavyColumn.MatchString(s):
		m.tell(s, "ADD COLUMN that reads or rewrites the table; a constant default, and the "+
			"constraint by itself, NOT VALID")
	}
	for _, c := range newConstraint.FindAllString(s, -1) {
		if !strings.Contains(c, "NOT VALID") && !strings.Contains(c, "USING INDEX") {
			m.tell(s, "ADD CONSTRAINT without NOT VALID reads the table while nobody else "+
				"gets to it")
		}
	}
	m.checkForm(s)
}

func (m *migration) checkIndex(s string) {
	found := newIndex.FindStringSubmatch(s)
	switch {
	case found == nil:
	case found[1] == "" && !slices.Contains(m.made, found[3]):
		m.tell(s, "without CONCURRENTLY nobody writes to the table meanwhile")
	case found[1] != "" && !slices.Contains(m.droppedBefore, found[2]):
		m.tell(s, "one that was left behind by a killed build is in the way: DROP INDEX "+
			"CONCURRENTLY IF EXISTS before it")
	}
}

// checkForm reports whether a migration without a transaction can be run again, and whether what is
// waited for long keeps nobody waiting.
func (m *migration) checkForm(s string) {
	slow := patient.MatchString(s)
	switch {
	case strings.HasPrefix(s, "SET lock_timeout"):
		m.slow = true
		if !m.loose {
			m.tell(s, "lock_timeout may be long only where nobody waits: CONCURRENTLY, VALIDATE "+
				"CONSTRAINT")
		}
	case slow && !m.loose:
		m.tell(s, "CONCURRENTLY and VALIDATE need NO TRANSACTION, or they keep what was locked "+
			"before them")
	case slow && !m.slow:
		m.tell(s, "waits for the oldest transaction: SET lock_timeout = '5min' before it")
	case m.slow && !slow:
		m.tell(s, "lock_timeout may be long only where nobody waits: CONCURRENTLY, VALIDATE "+
			"CONSTRAINT come last")
	}
	if m.loose && !repeatable.MatchString(s) {
		m.tell(s, "cannot be repeated, as a migration without a transaction may have to be: IF "+
			"NOT EXISTS")
	}
}

var (
	comment = regexp.MustCompile(`(?m)--.*$`)
	block   = regexp.MustCompile(`(?s)-- \+goose StatementBegin\n(.*?);?\s*-- \+goose StatementEnd`)
	space   = regexp.MustCompile(`\s+`)
)

// statements divides a migration into statements, each on one line, without comments.
func statements(text string) (list []string) {
	add := func(text, by string) {
		for s := range strings.SplitSeq(text, by) {
			if s = strings.TrimSpace(space.ReplaceAllString(comment.ReplaceAllString(s, ""), " ")); s != "" {
				list = append(list, strings.TrimSuffix(s, ";"))
			}
		}
	}
	for {
		at := block.FindStringSubmatchIndex(text)
		if at == nil {
			add(comment.ReplaceAllString(text, "")+"\n", ";\n")
			return list
		}
		add(comment.ReplaceAllString(text[:at[0]], "")+"\n", ";\n")
		list = append(list,
			strings.TrimSpace(space.ReplaceAllString(comment.ReplaceAllString(text[at[2]:at[3]],
				""), " ")))
		text = text[at[1]:]
	}
}
