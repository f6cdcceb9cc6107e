package db

import (
	"context"
	"time"
)

// History is what a database says about its own identity, and the identity that was confirmed last.
type History struct {
	Place    string // which server's data and which database; a restored dump is another place
	Timeline string // counts the promotions and restores of that place
	// The Place and Timeline that a server of Paidonce has confirmed; empty at first.
	Vouched  string
	Mark     int64 // only ever grows
	ForkedAt *time.Time
	Missing  int // how many of the given claims are not there
}

// Name is the history as one word.
func (h History) Name() string { return h.Place + "/" + h.Timeline }

// readHistory is not a generated query, because sqlc does not know pg_database.
const readHistory = `SELECT concat_ws('/', (SELECT c.system_identifier FROM pg_control_system() c),
		(SELECT d.oid FROM pg_database d WHERE d.datname = current_database())),
	substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8), i.history, m.mark, i.forked_at,
	(SELECT count(*) FROM unnest($1::text[]) AS o (id)
		WHERE NOT EXISTS (SELECT FROM charges c WHERE c.operation_id = o.id)
			AND NOT EXISTS (SELECT FROM refunds r WHERE r.operation_id = o.id)
			AND NOT EXISTS (SELECT FROM idempotency_keys k WHERE k.operation_id = o.id)
			AND NOT EXISTS (SELECT FROM operation_log l WHERE l.operation_id = o.id))
FROM installation i CROSS JOIN history_mark m`

// ReadHistory reads the history, and how many of the claimed operations are missing. On a standby,
// which has no timeline of its own, it fails. Errors: the database's.
func ReadHistory(ctx context.Context, conn DBTX, claimed []string) (h History, err error) {
	if claimed == nil {
		claimed = []string{}
	}
	err = conn.QueryRow(ctx, readHistory, claimed).Scan(&h.Place, &h.Timeline, &h.Vouched, &h.Mark,
		&h.ForkedAt, &h.Missing)
	return h, err
}
