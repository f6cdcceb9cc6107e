package tidy

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"paidonce/internal/dbtest"
)

// TestSchemaIsCommented checks that every table and column has a comment, where an operator sees
// it: with \d+ in psql.
func TestSchemaIsCommented(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), dbtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	const undocumented = `
		SELECT c.relname || coalesce('.' || a.attname, '')
		FROM pg_class c
		CROSS JOIN LATERAL (
			SELECT 0 AS attnum, NULL AS attname
			UNION ALL
			SELECT attnum, attname FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
		) a
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition
		  AND coalesce(trim(col_description(c.oid, a.attnum)), trim(CASE WHEN a.attnum = 0 THEN obj_description(c.oid, 'pg_class') END), '') = ''
		ORDER BY 1`
	rows, err := conn.Query(t.Context(), undocumented)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Errorf("%s has no comment", name)
	}
	var tables int
	if err := conn.QueryRow(t.Context(),
		"SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables); err != nil {
		t.Fatal(err)
	}
	if tables < 2 { // that of the versions and at least one other
		t.Errorf("only %d tables: not the migrated schema", tables)
	}
}
