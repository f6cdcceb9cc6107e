package world

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"paidonce/db"
)

// Tampered changes statements on their way to Pool. It takes out a guard, to see whether a test
// notices.
type Tampered struct {
	db.Pool
	Change func(sql string) string
}

// Exec is that of [db.Pool].
func (p Tampered) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return p.Pool.Exec(ctx, p.Change(sql), args...)
}

// Query is that of [db.Pool].
func (p Tampered) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return p.Pool.Query(ctx, p.Change(sql), args...)
}

// QueryRow is that of [db.Pool].
func (p Tampered) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return p.Pool.QueryRow(ctx, p.Change(sql), args...)
}

// Without removes guards from the statement of that name; $? stands for any parameter, and a space
// for any space. A guard that is not found fails the test.
func Without(t testing.TB, pool db.Pool, name string, guards ...string) db.Pool {
	return Tampered{pool, func(sql string) string {
		if !strings.Contains(sql, "-- name: "+name+" ") {
			return sql
		}
		for _, g := range guards {
			guard := pattern(g).FindString(sql)
			if guard == "" {
				t.Errorf("%s has no guard %q any more", name, g)
				continue
			}
			sql = strings.Replace(sql, guard, Parameters(guard), 1)
		}
		return sql
	}}
}

func pattern(guard string) *regexp.Regexp {
	return regexp.MustCompile(strings.NewReplacer(`\$\?`, `\$\d+`, " ",
		`\s+`).Replace(regexp.QuoteMeta(guard)))
}

var parameter = regexp.MustCompile(`\$\d+::\w+`)

// Parameters replaces a guard that is taken out by a condition with the same parameters that always
// holds: PostgreSQL would refuse a statement that lost a parameter.
func Parameters(guard string) (kept string) {
	for _, param := range parameter.FindAllString(guard, -1) {
		kept += " AND (" + param + " IS NULL OR true)"
	}
	return kept
}
