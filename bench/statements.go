package main

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// The two statements of a charge, for one row, on the product's schema. db/query/charges.sql writes
// the same for many rows. They are a text of our own, because they are meant to stay what a
// programmer would write who commits alone; when the schema changes, they have to be changed by
// hand. The settling one does not compare status with 'in_progress', which the recovery point
// implies: with it, a planner may read the whole partial index of unfinished keys instead of one
// row. Beside them are the same two on a schema with only what a safe charge needs.
var (
	//go:embed sql/claim.sql
	claimText string
	//go:embed sql/settle.sql
	settleText string
	//go:embed sql/lean_schema.sql
	leanSchema string
	//go:embed sql/lean_claim.sql
	leanClaimText string
	//go:embed sql/lean_settle.sql
	leanSettleText string
)

// shape is a schema and the two statements of a charge on it.
type shape struct {
	name, template string
	claim, settle  string
	// counts charges, unsettled ones, finished keys and events, and means bytes
	stored string
	owner  func(ctx context.Context, db *pgxpool.Pool) (owner, error) // of the rows
}

var (
	ours = shape{"charge", templateDB, claimText, settleText, `SELECT c.*, k.*, o.* FROM
		(SELECT count(*), count(*) FILTER (WHERE status <> 'succeeded') FROM charges WHERE id NOT LIKE $1) c,
		(SELECT count(*), coalesce(avg(octet_length(params)), 0)::float, coalesce(avg(octet_length(response_body)), 0)::float
			FROM idempotency_keys WHERE status = 'completed' AND resource_id NOT LIKE $1) k,
		(SELECT count(*), coalesce(avg(octet_length(payload)), 0)::float FROM outbox WHERE object_id NOT LIKE $1) o`, findOwner}
	lean = shape{"lean", leanDB, leanClaimText, leanSettleText, `SELECT c.*, k.*, o.* FROM
		(SELECT count(*), count(*) FILTER (WHERE status <> 'succeeded') FROM charges WHERE id NOT LIKE $1) c,
		(SELECT count(*), 0::float, coalesce(avg(octet_length(response_body)), 0)::float
			FROM idempotency_keys WHERE status = 'completed' AND charge_id NOT LIKE $1) k,
		(SELECT count(*), coalesce(avg(octet_length(payload::text)), 0)::float FROM outbox WHERE aggregate_id NOT LIKE $1) o`,
		func(context.Context, *pgxpool.Pool) (owner, error) { return owner{}, nil }}
)

// leanAccount owns all lean rows; their schema has no accounts.
const leanAccount int64 = 1

// script is the name of the file with the statements for pgbench.
func (s *shape) script() string { return s.name + ".pgbench" }

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

// pgbenchScript returns both statements for pgbench. It cannot turn numbers into text, so SQL
// builds the ids that differ from charge to charge, from one number that grows as a ULID does: :u,
// made of client and counter.
func pgbenchScript(s *shape) string {
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
		made.Replace(strings.TrimSpace(s.claim)) + ";\n" +
		made.Replace(strings.TrimSpace(s.settle)) + ";\n"
}
