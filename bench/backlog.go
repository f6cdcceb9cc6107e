package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// --backlog measures how fast piled-up work is done. In "reconcile" the owners of N operations are
// gone, and one pass of `paidonce reconcile` asks the provider for each and then sends it. In
// "relay" N events wait, and `paidonce relay --once` delivers them to a receiver that answers at
// once. In "posts" as many plain clients post the same payloads to the same receiver, with no
// signature, database or bookkeeping: this is what the receiver, the network and these cores allow.

// backlogClients is how many posts run at once to one receiver: as many as one relay sends to an
// endpoint.
const backlogClients = 32

func backlogCell(kind string, round int) cell {
	return cell{System: Product, Kind: kind, Clients: backlogClients, Round: round}
}

// backlogs reports whether a cell is one of --backlog.
func (c cell) backlogs() bool {
	return c.Kind == "reconcile" || c.Kind == "relay" || c.Kind == "posts"
}

// fillStuck writes operations whose owners died ten minutes ago, after the claim. Nobody knows
// whether they had called the provider.
const fillStuck = `
WITH x AS (
	SELECT i, $3::text || lpad(i::text, 22, '0') AS id, statement_timestamp() - interval '10 minutes' AS born FROM generate_series(1, $4::bigint) i
), claimed AS (
	INSERT INTO idempotency_keys (account_id, key, operation_id, kind, hash_version, request_hash, request_id, params, resource_id, recovery_point,
		lease_token, locked_at, first_attempt_at, last_attempt_at, created_at)
	SELECT $1::text, 'stuck-' || x.id, 'op_' || x.id, 'charge.create', 1, sha256(x.id::bytea), 'req_' || x.id,
		convert_to(replace(convert_from($2::bytea, 'UTF8'), repeat('0', 26), x.id), 'UTF8'), 'ch_' || x.id, 'started', 'lease-' || x.id, x.born, x.born, x.born, x.born
	FROM x
)
INSERT INTO charges (id, account_id, operation_id, amount, currency, capture, livemode, created_at, description, metadata)
SELECT 'ch_' || x.id, $1::text, 'op_' || x.id, 4200, 'usd', true, false, x.born, $5::text, $6::jsonb FROM x`

// fillEvents writes events that have no position yet.
const fillEvents = `
INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload)
SELECT 'evt_' || x.id, $1::text, 'charge.succeeded', 'op_' || x.id, 'ch_' || x.id, $2::bytea
FROM (SELECT $3::text || lpad(i::text, 22, '0') AS id FROM generate_series(1, $4::bigint) i) x`

// fillEndpoint creates an endpoint that wants them.
const fillEndpoint = `
WITH e AS (INSERT INTO webhook_endpoints (account_id, id, url, enabled_events) VALUES ($1::text, 'bench', $2::text, '{*}') RETURNING number)
INSERT INTO webhook_secrets (endpoint, secret) SELECT e.number, 'whsec_' || encode(sha256('bench'), 'base64') FROM e`

// backlogMark begins the ids of the backlog; it sorts after those of earlier rows.
const backlogMark = "00ff"

// pileUp writes the backlog of a cell; its events go to hook.
func (p *postgres) pileUp(ctx context.Context, c cell, url, hook string, n int) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	v := sampleRow(p.owner)
	switch c.Kind {
	case "reconcile":
		_, err = conn.Exec(ctx, fillStuck, p.owner.Account, v["params"], backlogMark, n,
			v["description"], v["metadata"])
	case "relay":
		// Earlier events would be delivered, too.
		if _, err := conn.Exec(ctx, "DELETE FROM outbox"); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, fillEndpoint, p.owner.Account, hook); err != nil {
			return err
		}
		_, err = conn.Exec(ctx, fillEvents, p.owner.Account, v["payload"], backlogMark, n)
	}
	if err != nil {
		return err
	}
	for _, q := range []string{"VACUUM ANALYZE", "CHECKPOINT"} {
		if _, err := conn.Exec(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// runBacklog measures one cell of --backlog.
func (b *bench) runBacklog(ctx context.Context, c cell, name, url string) (r result, err error) {
	r.cell = c
	stub, err := startChild("the stub", nil, b.log, b.self, "stub")
	if err != nil {
		return r, err
	}
	defer stub.stop()
	addr, err := stub.address()
	if err != nil {
		return r, err
	}
	provider := "http://" + addr
	if err := b.pg.pileUp(ctx, c, url, provider+hookPath, b.cfg.Backlog); err != nil {
		return r, fmt.Errorf("pile up: %w", err)
	}
	from, err := b.readMeters(ctx, parties{stub: stub.pid()})
	if err != nil {
		return r, err
	}
	began := time.Now()
	cmd := b.backlogCommand(ctx, c, provider)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+url, "STRIPE_API_KEY=sk_test_x",
		"STRIPE_API_BASE="+provider, "PAIDONCE_WEBHOOK_ALLOW_PRIVATE=true",
		"PAIDONCE_LOG_FORMAT=json", fmt.Sprintf("PAIDONCE_DB_MAX_CONNS=%d", b.cfg.Pool))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, b.log
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, said.Bytes())
	}
	took := time.Since(began)
	to, err := b.readMeters(ctx, parties{stub: stub.pid()})
	if err != nil {
		return r, err
	}
	r.Requests, r.PerSecond = b.cfg.Backlog, float64(b.cfg.Backlog)/took.Seconds()
	r.fill(from, to)
	r.CPUServer = float64((cmd.ProcessState.UserTime() +
		cmd.ProcessState.SystemTime()).Microseconds()) / float64(r.Requests)
	stats, err := readStubStats(ctx, provider)
	if err != nil {
		return r, err
	}
	return r, b.auditBacklog(ctx, c, name, stats, said.Bytes())
}

func (b *bench) backlogCommand(ctx context.Context, c cell, provider string) *exec.Cmd {
	switch c.Kind {
	case "reconcile":
		return exec.CommandContext(ctx, b.binary, "reconcile", "--json", "--limit", fmt.Sprint(b.cfg.Backlog)) //nolint:gosec // the binary that we built
	case "relay":
		return exec.CommandContext(ctx, b.binary, "relay", "--once", "--json") //nolint:gosec // the binary that we built
	}
	return exec.CommandContext(ctx, b.self, "post", "--url", provider+hookPath, "--clients", fmt.Sprint(backlogClients), "--count", fmt.Sprint(b.cfg.Backlog)) //nolint:gosec // this program
}

// auditBacklog checks that everything was done once, by what the stub saw, what the command
// reports, and the rows.
func (b *bench) auditBacklog(
	ctx context.Context, c cell, name string, stats stubStats, said []byte,
) error {
	n := int64(b.cfg.Backlog)
	if c.Kind != "reconcile" {
		if stats.Hooks != n || stats.Events != n {
			return fmt.Errorf("%d events were to be delivered, the receiver got %d deliveries of "+
				"%d events", n, stats.Hooks, stats.Events)
		}
		if c.Kind == "posts" {
			return nil
		}
	}
	var told struct{ Finished, Delivered int64 }
	if err := json.Unmarshal(said, &told); err != nil {
		return fmt.Errorf("%s --json said %q: %w", c.Kind, said, err)
	}
	if told.Finished+told.Delivered != n {
		return fmt.Errorf("of %d, it says: %s", n, said)
	}
	if c.Kind == "relay" {
		return nil
	}
	rows, err := b.pg.stored(ctx, c, name)
	if err != nil {
		return err
	}
	return audit(rows.charges, n, n, stats)
}

// backlogGoals are per second, not ratios, since that is how they are meant.
func (r *report) backlogGoals() []goal {
	rate := func(name, kind string, limit float64) goal {
		g := goal{Name: name, Want: fmt.Sprintf("at least %.0f", limit), State: "not measured"}
		for _, x := range r.Medians {
			if x.Kind == kind {
				g.decide(x.PerSecond, x.PerSecond >= limit)
			}
		}
		return g
	}
	return []goal{
		rate("operations/s that reconcile drives, instant provider", "reconcile", 3000),
		rate("deliveries/s of a relay, one instant receiver", "relay", 3000),
	}
}

func (r *report) printBacklog(w io.Writer) {
	if !slices.ContainsFunc(r.Medians, func(x result) bool { return x.backlogs() }) {
		return
	}
	put(w, "\nWhat piled up: stuck operations, driven by one pass; events, delivered by one "+
		"relay; the same posts by plain clients\n")
	r.printCells(w, func(x result) bool { return x.backlogs() })
	if x, ok := r.paired(backlogCell("relay", 0), backlogCell("posts", 0), perSecond); ok {
		put(w, "relay/posts: %.2f (%.2f-%.2f)\n", x.Median, x.Least, x.Most)
	}
}
