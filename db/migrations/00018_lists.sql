-- +goose NO TRANSACTION
-- +goose Up

-- Building waits for the oldest transaction; so long, and not forever.
SET lock_timeout = '5min';

-- Each is built while the table is read and written. One whose building was cut off is there, is
-- invalid and never used: so whatever is there goes first.

-- What an account lists, in that order. Apart are failed charges, which may be one in a million or
-- nearly all: a list of one sort reads none of the other, and a list of both merges them. Pending
-- and succeeded ones are together, so that a charge that succeeds leaves its old entry beside the
-- new one: among pending ones alone, all that ever were would lie in the way.
DROP INDEX CONCURRENTLY IF EXISTS charges_listed;
CREATE INDEX CONCURRENTLY charges_listed ON charges (account_id, (status = 'failed'), created_at DESC, id DESC);

-- The few that are pending.
DROP INDEX CONCURRENTLY IF EXISTS charges_pending;
CREATE INDEX CONCURRENTLY charges_pending ON charges (account_id, created_at DESC, id DESC) WHERE status = 'pending';

-- What a customer has; charges without one are not in it. Its third column says what that of
-- charges_listed says, in other words: so each statement fits one of them only, and no planner has
-- a choice.
DROP INDEX CONCURRENTLY IF EXISTS charges_of_customer;
CREATE INDEX CONCURRENTLY charges_of_customer ON charges (account_id, customer, (status <> 'failed'), created_at DESC, id DESC)
    WHERE customer IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS refunds_of_charge;
CREATE INDEX CONCURRENTLY refunds_of_charge ON refunds (charge_id, created_at DESC, id DESC);

-- +goose Down

SET lock_timeout = '5min';

DROP INDEX CONCURRENTLY IF EXISTS refunds_of_charge;
DROP INDEX CONCURRENTLY IF EXISTS charges_of_customer;
DROP INDEX CONCURRENTLY IF EXISTS charges_pending;
DROP INDEX CONCURRENTLY IF EXISTS charges_listed;
