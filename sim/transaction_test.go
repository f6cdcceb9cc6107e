package sim_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// BeginTx returns a transaction that begins with its first statement.
func (p simulatedPool) BeginTx(_ context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	return &simulatedTx{in: p.in, options: options}, nil
}

// simulatedTx is a transaction of several statements. Its fate is decided before the first of them.
type simulatedTx struct {
	pgx.Tx  // nil before the first statement
	in      *process
	options pgx.TxOptions
	fate    fate
	claim   []any // what a claim wrote
}

// statement stops before the first statement, and returns how this one is executed.
func (t *simulatedTx) statement(ctx context.Context, sql string, args []any) (string, error) {
	name, lane := statementName(sql), t.in.run.lane
	if name == "KeyClaim" {
		t.claim = args
	}
	if t.Tx != nil {
		return t.in.run.change(sql), ctx.Err()
	}
	if slices.Contains(stopTransactions, name) {
		t.fate = t.in.stop(ctx, name, args...).fate
	}
	if t.fate == refuse {
		return sql, fmt.Errorf("simulated: the connection is gone before %s", name)
	}
	err := ctx.Err()
	if err == nil {
		lane.carry(func() { t.Tx, err = lane.pool.BeginTx(context.Background(), t.options) })
	}
	return t.in.run.change(sql), err
}

func (t *simulatedTx) Exec(
	ctx context.Context, sql string, args ...any,
) (tag pgconn.CommandTag, err error) {
	if sql, err = t.statement(ctx, sql, args); err != nil {
		return tag, err
	}
	t.in.run.lane.carry(func() { tag, err = t.Tx.Exec(context.Background(), sql, args...) })
	return tag, err
}

func (t *simulatedTx) Query(
	ctx context.Context, sql string, args ...any,
) (rows pgx.Rows, err error) {
	if sql, err = t.statement(ctx, sql, args); err != nil {
		return nil, err
	}
	t.in.run.lane.carry(func() { rows, err = t.Tx.Query(context.Background(), sql, args...) }) //nolint:sqlclosecheck // the caller's
	return rows, err
}

func (t *simulatedTx) QueryRow(ctx context.Context, sql string, args ...any) (row pgx.Row) {
	sql, err := t.statement(ctx, sql, args)
	if err != nil {
		return failedRow{err}
	}
	t.in.run.lane.carry(func() { row = t.Tx.QueryRow(context.Background(), sql, args...) })
	return row
}

// Commit implements [pgx.Tx].
func (t *simulatedTx) Commit(ctx context.Context) (err error) {
	if t.fate == dieInside {
		return t.Rollback(ctx)
	}
	t.in.run.lane.carry(func() { err = t.Tx.Commit(context.Background()) })
	if err != nil {
		return err
	}
	t.noteClaim()
	switch t.fate {
	case dieAfter:
		runtime.Goexit()
	case lose:
		return fmt.Errorf("simulated: the connection is gone after the commit")
	}
	return nil
}

// Rollback implements [pgx.Tx].
func (t *simulatedTx) Rollback(context.Context) (err error) {
	if t.Tx == nil {
		return nil
	}
	t.in.run.lane.carry(func() { err = t.Tx.Rollback(context.Background()) })
	if t.fate == dieInside || t.fate == dieAfter {
		runtime.Goexit()
	}
	return err
}

// noteClaim notes the operation that was claimed.
func (t *simulatedTx) noteClaim() {
	var id, key string
	for _, a := range t.claim {
		switch s, _ := a.(string); {
		case len(s) > 3 && s[:3] == "op_":
			id = s
		case len(s) > 4 && s[:4] == "end-":
			key = s
		}
	}
	if id == "" {
		return
	}
	t.in.run.mu.Lock()
	defer t.in.run.mu.Unlock()
	t.in.run.track(id, key, variantOf(t.claim, 0))
}
