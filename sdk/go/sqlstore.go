package paidonce

import (
	"context"
	"database/sql"
	"errors"
)

// SQLSchema creates the table of SQLStore, in PostgreSQL.
const SQLSchema = `CREATE TABLE IF NOT EXISTS paidonce_operations (
	name      text PRIMARY KEY,
	operation text NOT NULL,
	finished  boolean NOT NULL DEFAULT false
);
CREATE INDEX IF NOT EXISTS paidonce_operations_unfinished ON paidonce_operations (name) WHERE NOT finished`

// SQL is a *sql.DB, or the *sql.Tx of the transaction that creates your order.
type SQL interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// SQLStore stores operations in a table of your database. Give a Client one on a *sql.DB, because
// an operation has to be committed before its first attempt. One on a *sql.Tx is for BeginCharge.
type SQLStore struct{ DB SQL }

// Begin implements Store.
func (s SQLStore) Begin(ctx context.Context, op Operation) (Operation, error) {
	text, err := encode(op)
	if err != nil {
		return op, err
	}
	for {
		done, err := s.DB.ExecContext(ctx,
			`INSERT INTO paidonce_operations (name, operation) VALUES ($1, $2) ON CONFLICT DO NOTHING`, op.Name, string(text))
		if err != nil {
			return op, err
		}
		if n, err := done.RowsAffected(); err != nil || n == 1 {
			return op, err
		}
		first, err := s.Find(ctx, op.Name)
		if err != nil {
			return op, err
		}
		if first != nil {
			return *first, nil
		}
		// The operation was forgotten meanwhile.
	}
}

// Find implements Store.
func (s SQLStore) Find(ctx context.Context, name string) (*Operation, error) {
	var text []byte
	err := s.DB.QueryRowContext(ctx, `SELECT operation FROM paidonce_operations WHERE name = $1`,
		name).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	op, err := decode(text)
	return &op, err
}

// Finish implements Store.
func (s SQLStore) Finish(ctx context.Context, op Operation) error {
	text, err := encode(op)
	if err != nil {
		return err
	}
	_, err = s.DB.ExecContext(ctx,
		`UPDATE paidonce_operations SET operation = $2, finished = $3 WHERE name = $1`, op.Name,
		string(text), op.Answer != nil)
	return err
}

// Forget implements Store.
func (s SQLStore) Forget(ctx context.Context, name string) error {
	_, err := s.DB.ExecContext(ctx, `DELETE FROM paidonce_operations WHERE name = $1`, name)
	return err
}

// Unfinished implements Store.
func (s SQLStore) Unfinished(ctx context.Context) (open []Operation, err error) {
	rows, err := s.DB.QueryContext(ctx,
		`SELECT operation FROM paidonce_operations WHERE NOT finished ORDER BY name`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text []byte
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		op, err := decode(text)
		if err != nil {
			return nil, err
		}
		open = append(open, op)
	}
	return open, rows.Err()
}
