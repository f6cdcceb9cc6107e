-- The one row about this installation: its tag, its account at the provider, the history that is
-- vouched for. Also the time.

-- name: HistoryAdopt :execrows
-- Vouches for a history, unless somebody has opened a recovery meanwhile.
UPDATE installation SET history = @history, timeline = @timeline WHERE forked_at IS NULL;

-- name: InstallationTag :one
SELECT tag FROM installation;

-- name: Now :one
SELECT clock_timestamp()::timestamptz AS now;

-- name: ProviderAccountCurrent :one
SELECT coalesce(i.provider_account, 0)::smallint AS current FROM installation i;

-- name: ProviderAccountLock :one
-- One at a time decides which account is the current one. Claims only read the row, and do not
-- wait.
SELECT coalesce(i.provider_account, 0)::smallint AS current FROM installation i FOR UPDATE;

-- name: RecoveryOpened :one
-- Whether claims are held, by a recovery that is open or a history that nobody has vouched for.
SELECT (i.forked_at IS NOT NULL OR i.timeline <> ''
    AND i.timeline <> substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::boolean AS held
    FROM installation i;
