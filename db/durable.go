package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNotDurable means that the database would lose committed rows in a crash.
var ErrNotDurable = errors.New("the database is not durable")

// CheckDurability reports whether the database would lose committed rows in a crash: an
// acknowledged charge must not be forgotten. Errors: [ErrNotDurable], or the database's.
func CheckDurability(ctx context.Context, pool *pgxpool.Pool) error {
	var fsync, sync string
	err := pool.QueryRow(ctx, `SELECT current_setting('fsync'), current_setting('synchronous_commit')`).Scan(&fsync, &sync)
	if err != nil {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	if fsync == "off" || sync == "off" {
		return fmt.Errorf("%w: it runs with fsync=%s and synchronous_commit=%s, so a crash "+
			"would lose charges that were acknowledged", ErrNotDurable, fsync, sync)
	}
	return nil
}
