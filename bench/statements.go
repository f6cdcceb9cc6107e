package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

// The two statements of a charge, in single-row form: what db/query/charges.sql writes for many. They are kept here as
// text of our own, so that they stay what one would write who commits alone; when the schema changes, they follow by hand.
// The settling one does not ask for status = 'in_progress', which the recovery point implies: a planner that is told may
// read the whole partial index of unfinished keys instead of one row.
var (
	//go:embed sql/claim.sql
	claimText string
	//go:embed sql/settle.sql
	settleText string
)

// placeholder finds :name but not the :: of a cast.
var placeholder = regexp.MustCompile(`(^|[^:]):([a-z_]+)`)

// statement is SQL for pgx with the names of its parameters in order.
type statement struct {
	sql   string
	names []string
}

// numbered turns :name into $1, $2, …
func numbered(text string) statement {
	var s statement
	s.sql = placeholder.ReplaceAllStringFunc(text, func(m string) string {
		before, name, _ := strings.Cut(m, ":")
		for i, n := range s.names {
			if n == name {
				return fmt.Sprintf("%s$%d", before, i+1)
			}
		}
		s.names = append(s.names, name)
		return fmt.Sprintf("%s$%d", before, len(s.names))
	})
	return s
}

// args puts named values in the statement's order.
func (s statement) args(values map[string]any) []any {
	out := make([]any, len(s.names))
	for i, n := range s.names {
		v, ok := values[n]
		if !ok {
			panic("bench: the statement wants a value for " + n)
		}
		out[i] = v
	}
	return out
}

// pgbenchScript is both statements for pgbench. It cannot make text of numbers, so the ids that differ from charge to charge
// are put together in SQL, of one number that grows as a ULID would: :u, by client and counter.
func pgbenchScript() string {
	made := strings.NewReplacer(
		":key::text", "('bench-key-000000000-' || :u::text)",
		":operation_id::text", "('op_00000000' || :u::text)",
		":charge_id::text", "('ch_00000000' || :u::text)",
		":lease_token::text", "('lease_0000000' || :u::text)",
		":request_id::text", "('req_00000000' || :u::text)",
		":provider_id::text", "('ch_3Nw0000000' || :u::text)",
		":event_id::text", "('evt_00000000' || :u::text)",
	)
	return "\\set n :n + 1\n" +
		"\\set u 100000000000000000 + :n * 1000 + :client_id\n" +
		made.Replace(strings.TrimSpace(claimText)) + ";\n" +
		made.Replace(strings.TrimSpace(settleText)) + ";\n"
}
