package db

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// ForOne returns a connection for a set-based statement of a single row. Its arrays of one become
// scalars, and its table of rows a row of them; the rest of the text stays as it is. PostgreSQL
// then joins nothing for it, which is an eighth of its CPU time for a charge that commits alone.
// Only Query is changed. A text with an array that is no column of such a table must not come this
// way.
func ForOne(conn DBTX) DBTX { return forOne{conn} }

type forOne struct{ DBTX }

// Query implements [DBTX].
func (f forOne) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	for i, arg := range args {
		args[i] = only(arg)
	}
	return f.DBTX.Query(ctx, textForOne(sql), args...)
}

// only returns the element of an array of one, and anything else as it is.
func only(arg any) any {
	switch v := arg.(type) {
	case []string:
		return v[0]
	case [][]byte:
		return v[0]
	case []int16:
		return v[0]
	case []int64:
		return v[0]
	case []bool:
		return v[0]
	}
	return arg
}

var (
	tableOfRows = regexp.MustCompile(`(?s)ROWS FROM \(([^;]*?)\n\s*\) AS x \((.*?)\)`)
	column      = regexp.MustCompile(`unnest\((\$\d+::\w+)\[\]\)`)
	textsForOne sync.Map // from text to text; there are two
)

// textForOne replaces the table of rows of a statement.
func textForOne(sql string) string {
	if text, known := textsForOne.Load(sql); known {
		return text.(string) //nolint:errcheck,forcetypeassert // nothing else is stored
	}
	text := sql
	if at := tableOfRows.FindStringSubmatchIndex(sql); at != nil {
		names := strings.Split(sql[at[4]:at[5]], ",")
		scalars := column.FindAllStringSubmatch(sql[at[2]:at[3]], -1)
		if len(names) != len(scalars) {
			panic(fmt.Sprintf("a table of %d columns has %d names: %s", len(scalars), len(names), sql))
		}
		for i, name := range names {
			names[i] = scalars[i][1] + " AS " + strings.TrimSpace(name)
		}
		text = sql[:at[0]] + "(SELECT " + strings.Join(names, ", ") + ") AS x" + sql[at[1]:]
	}
	textsForOne.Store(sql, text)
	return text
}
