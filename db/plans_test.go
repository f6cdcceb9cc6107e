package db_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/db"
	"paidonce/internal/dbtest"
)

// Every hot statement keeps to its indexes whatever the statistics are: those of no table at all,
// of an empty one, of one where nothing waited, of the table as it is. A generic plan lives as long
// as its connection, so those of the first three are run when there are many rows and much waits.
func TestHotStatementsKeepTheirPlans(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(*planner){
		"never analysed": func(p *planner) {
			old := p.plan("empty", "generic")
			p.done()
			p.burst()
			old.run()
			p.both("full")
			p.exec(`ANALYZE`)
			p.both("analysed")
		},
		// No plan is kept that was made then, see TestPlansAreMadeAnewWhileNothingIsKnown.
		"analysed when empty": func(p *planner) {
			p.exec(`ANALYZE`)
			p.done()
			p.burst()
			p.both("full")
		},
		"analysed when idle": func(p *planner) {
			p.done()
			p.exec(`ANALYZE`)
			old := p.plan("idle", "generic")
			p.burst()
			old.run()
			p.both("waiting")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(newPlanner(t))
		})
	}
}

// planner plans and runs the hot statements on one database.
type planner struct {
	*testing.T
	conn *pgxpool.Conn // as the product has them
	bare *pgx.Conn     // as it has them behind a pooler: without settings for the session
	hot  []statement
}

func newPlanner(t *testing.T) *planner {
	t.Helper()
	url := dbtest.New(t)
	pool, err := db.Open(url, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	p := &planner{T: t, hot: hot(db.New())}
	if p.conn, err = pool.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.conn.Release)
	if p.bare, err = pgx.Connect(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.bare.Close(context.Background()) })
	for _, table := range growing { // PostgreSQL's own ANALYZE would make all states one, some day
		p.exec(`ALTER TABLE ` + table + ` SET (autovacuum_enabled = false)`)
	}
	return p
}

// growing are the tables that have a row for each charge or more. None is ever read whole.
var growing = []string{
	"idempotency_keys", "charges", "refunds", "provider_events", "outbox", "deliveries", "operation_log", "receipts",
	"recovered_keys",
}

func (p *planner) exec(sql string) {
	p.Helper()
	if _, err := p.conn.Exec(p.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		p.Fatalf("%s: %v", sql[:min(len(sql), 200)], err)
	}
}

// both plans and runs all statements, for any arguments and for theirs, and for theirs behind a
// pooler.
func (p *planner) both(state string) {
	p.Helper()
	p.plan(state, "generic").run()
	p.plan(state, "custom").run()
	if state == "full" {
		return // without statistics PostgreSQL guesses, well enough for a minute
	}
	own := *p
	bare := &plans{planner: &own, on: p.bare, state: state + ", behind a pooler", mode: "custom", prefix: "bare_" + state}
	bare.prepare()
	bare.run()
}

// needSettings are statements that may read all that waits for an endpoint where connections have
// none of our own settings.
var needSettings = []string{"DeliveriesOfNobody", "DeliveryClaim"}

// plans are the statements as they were planned in one state.
type plans struct {
	*planner
	on                  *pgx.Conn
	state, mode, prefix string
}

// plan plans all statements now.
func (p *planner) plan(state, mode string) *plans {
	p.Helper()
	s := &plans{planner: p, on: p.conn.Conn(), state: state, mode: mode, prefix: strings.ToLower(state + "_" + mode)}
	s.prepare()
	return s
}

func (p *plans) prepare() {
	p.Helper()
	if p.on == p.bare {
		p.hot = slices.DeleteFunc(slices.Clone(p.hot), func(s statement) bool { return slices.Contains(needSettings, s.name) })
	}
	for _, s := range p.hot {
		sql, args := s.overhear(p.T)
		if _, err := p.on.Exec(p.Context(), "PREPARE "+p.prefix+"_"+s.name+" AS "+sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			p.Fatalf("%s: %v", s.name, err)
		}
		p.explain(s, "", args)
	}
}

// run runs what was planned, and takes back what it did. No table that grows may be read whole, and
// no index walked for more than what is asked for.
func (p *plans) run() {
	p.Helper()
	for _, s := range p.hot {
		_, args := s.overhear(p.T)
		text := p.explain(s, "ANALYZE, BUFFERS, TIMING OFF,", args)
		var tops []struct{ Plan node }
		if err := json.Unmarshal([]byte(text), &tops); err != nil || len(tops) == 0 {
			p.Fatalf("%s: %v", s.name, err)
		}
		var used []string
		blocks, rows := 0, 0
		tops[0].Plan.each(func(n node) {
			if n.Index != "" {
				used = append(used, n.Index)
			}
			if n.Relation != "" && n.Type != "ModifyTable" {
				blocks += n.Hit + n.Read
				rows += int((n.Rows + n.Filtered + n.Rechecked) * n.Loops)
			}
			if n.Type == "Seq Scan" && slices.Contains(growing, n.Relation) {
				p.Errorf("%s, %s, %s: it reads all of %s", s.name, p.state, p.mode, n.Relation)
			}
		})
		// An entry is found in four blocks or so: three of its index, one of the table. A row is
		// looked at some times, in several tables.
		if most := 60 + 25*max(s.rows, 1); blocks > most || rows > most {
			p.Errorf("%s, %s, %s: it reads %d rows in %d blocks for %d, of %v", s.name, p.state, p.mode, rows, blocks, max(s.rows, 1), used)
		}
		for _, index := range s.indexes {
			if !slices.ContainsFunc(used, regexp.MustCompile("^("+index+")$").MatchString) {
				p.Errorf("%s, %s, %s: it does not use %s but %v", s.name, p.state, p.mode, index, used)
			}
		}
		if testing.Verbose() && p.Failed() {
			p.Logf("%s: %s", s.name, text)
		}
	}
}

func (p *plans) explain(s statement, how string, args []any) string {
	p.Helper()
	var places []string
	for i := range args {
		places = append(places, fmt.Sprint("$", i+1))
	}
	call := strings.TrimSuffix("EXECUTE "+p.prefix+"_"+s.name+"("+strings.Join(places, ", ")+")", "()")
	var text string
	err := pgx.BeginFunc(p.Context(), p.on, func(tx pgx.Tx) error {
		if _, err := tx.Exec(p.Context(), "SET LOCAL plan_cache_mode = force_"+p.mode+"_plan"); err != nil {
			return err
		}
		args := append([]any{pgx.QueryExecModeSimpleProtocol}, args...)
		if err := tx.QueryRow(p.Context(), "EXPLAIN ("+how+" FORMAT JSON) "+call, args...).Scan(&text); err != nil {
			return err
		}
		return errOverheard
	})
	if !errors.Is(err, errOverheard) {
		p.Fatalf("%s, %s: %v", s.name, p.state, err)
	}
	return text
}

// node is a step of a plan, as EXPLAIN tells it.
type node struct {
	Type      string  `json:"Node Type"`
	Relation  string  `json:"Relation Name"`
	Index     string  `json:"Index Name"`
	Hit       int     `json:"Shared Hit Blocks"`
	Rows      float64 `json:"Actual Rows"`
	Filtered  float64 `json:"Rows Removed by Filter"`
	Rechecked float64 `json:"Rows Removed by Index Recheck"`
	Loops     float64 `json:"Actual Loops"`
	Read      int     `json:"Shared Read Blocks"`
	Plans     []node
}

func (n node) each(look func(node)) {
	look(n)
	for _, below := range n.Plans {
		below.each(look)
	}
}

// statement is one that runs for every charge, event or delivery, or whose cost must not grow with
// what is kept.
type statement struct {
	name    string
	call    call
	rows    int      // how many it may look at; 0: one
	indexes []string // that are meant for it
}

type call = func(context.Context, db.DBTX) error

// overhear gives a statement's text and arguments.
func (s statement) overhear(t *testing.T) (string, []any) {
	t.Helper()
	var o overhearing
	if err := s.call(t.Context(), &o); !errors.Is(err, errOverheard) {
		t.Fatalf("%s: %v", s.name, err)
	}
	return o.sql, o.values
}

// overhearing notes a statement instead of executing it.
type overhearing struct {
	sql    string
	values []any
}

var errOverheard = errors.New("noted, not executed")

func (o *overhearing) note(sql string, args []any) error {
	o.sql, o.values = sql, args
	return errOverheard
}

func (o *overhearing) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, o.note(sql, args)
}

func (o *overhearing) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	return nil, o.note(sql, args)
}

func (o *overhearing) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	return overheardRow{o.note(sql, args)}
}

type overheardRow struct{ err error }

func (r overheardRow) Scan(...any) error { return r.err }
