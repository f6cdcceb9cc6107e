package idemkeys_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/internal/world"
)

// steps is a foreign system that an operation calls three times. It keeps a ledger of its own, by
// operation and step, and knows no keys: a step that is taken twice is written twice.
type steps struct {
	mu    sync.Mutex
	taken map[string][]string
}

func (s *steps) take(op *idemkeys.Operation, step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[op.ID] = append(s.taken[op.ID], step)
}

func (s *steps) has(op *idemkeys.Operation, step string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.taken[op.ID] {
		if t == step {
			return true
		}
	}
	return false
}

// crashPoint is where a run of three steps dies: before or after the nth foreign call, or at the
// nth commit, rolled back or committed.
type crashPoint struct {
	place   string // "", "before call", "after call", "inside commit", "after commit"
	n       int
	crashed chan struct{}
}

func (p crashPoint) at(place string, n int) {
	if p.place == place && p.n == n {
		close(p.crashed)
		world.Crash()
	}
}

// journey is the kind of operation: first → second → third → finished.
func journey(pool db.Pool, s *steps, p crashPoint) idemkeys.Kind {
	phase := func(n int, step string, next idemkeys.Point) idemkeys.Phase {
		return func(_ context.Context, op *idemkeys.Operation) (*idemkeys.Commit, error) {
			if !s.has(op, step) { // the look-up
				p.at("before call", n)
				s.take(op, step)
				p.at("after call", n)
			}
			if next != idemkeys.Finished {
				return &idemkeys.Commit{
					Next: next, Params: fmt.Append(op.Params, step, " "),
					Write: idemkeys.Advance(pool),
				}, nil
			}
			answer := idemkeys.Answer{
				Code: 200, Header: map[string]string{}, Body: fmt.Append(op.Params, step),
			}
			return &idemkeys.Commit{
				Next: next, Status: idemkeys.Completed, Answer: &answer, Write: finish{pool},
			}, nil
		}
	}
	return idemkeys.Kind{Phases: idemkeys.Phases{
		idemkeys.Started: phase(1, "a", "a_done"), "a_done": phase(2, "b", "b_done"),
		"b_done": phase(3, "c", idemkeys.Finished),
	}}
}

// finish stores the answer, and nothing else.
type finish struct{ pool db.Pool }

func (w finish) Execute(ctx context.Context, f idemkeys.Fence, c *idemkeys.Commit) (bool, error) {
	_, err := db.New().KeyFinish(ctx, w.pool, db.KeyFinishParams{
		Status: string(c.Status), ResponseCode: int16(c.Answer.Code), ResponseHeaders: []byte("{}"),
		ResponseBody: c.Answer.Body, KeyTtl: 1e12, AccountID: f.AccountID, Key: f.Key,
		OperationID: f.OperationID, LeaseToken: f.LeaseToken, RecoveryPoint: string(f.Point),
	})
	return err == nil, err
}

// crashingCommits crashes at the commits of a journey: KeyAdvance twice, then KeyFinish.
type crashingCommits struct {
	*pgxpool.Pool
	p crashPoint
	n *int
}

func (c crashingCommits) Exec(
	ctx context.Context, sql string, args ...any,
) (pgconn.CommandTag, error) {
	*c.n++
	if c.p.place == "inside commit" {
		c.p.at("inside commit", *c.n)
	}
	tag, err := c.Pool.Exec(ctx, sql, args...)
	c.p.at("after commit", *c.n)
	return tag, err
}

// begin asks for a journey under a key.
func begin(w *world.World, e *idemkeys.Engine, key string) (idemkeys.Result, error) {
	claim := func(ctx context.Context, r idemkeys.Request, op *idemkeys.Operation) (
		idemkeys.Claimed, error,
	) {
		op.Kind, op.ResourceID, op.Params = "journey", "none", []byte{}
		at, claimed, err := idemkeys.ClaimIn(ctx, w.Pool, r, op)
		op.SetClaimed(at)
		return claimed, err
	}
	return e.Do(context.Background(), w.Request(key), claim)
}

// An operation of three foreign steps that is killed between any two, and resumed by either driver,
// takes every step once and in order.
func TestManySteps(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"before call", "after call", "inside commit", "after commit"} {
		for n := 1; n <= 3; n++ {
			if n == 3 && place != "before call" && place != "after call" {
				continue // the last commit is a charge's as well; TestCrashMatrix has it
			}
			for _, driver := range []string{"client", "reconciler"} {
				t.Run(fmt.Sprintf("%s %d, then %s", place, n, driver), func(t *testing.T) {
					t.Parallel()
					w := world.New(t)
					foreign := &steps{taken: map[string][]string{}}
					p := crashPoint{place, n, make(chan struct{})}
					doomed := idemkeys.NewEngine(
						w.Pool, w.Keys, world.Quiet,
						map[string]idemkeys.Kind{
							"journey": journey(crashingCommits{w.Pool, p, new(int)}, foreign, p),
						},
					)
					world.UntilCrash(t, p.crashed, func() { _, _ = begin(w, doomed, "k") })
					w.Age(w.Keys.StaleAfter)
					second := idemkeys.NewEngine(
						w.Pool, w.Keys, world.Quiet,
						map[string]idemkeys.Kind{"journey": journey(w.Pool, foreign, crashPoint{})},
					)
					if driver == "reconciler" {
						w.Pass(world.Instance{Engine: second})
					}
					res, err := begin(w, second, "k")
					if err != nil || string(res.Answer.Body) != "a b c" {
						t.Fatalf("%q, %v", res.Answer.Body, err)
					}
					if again, err := begin(w, second, "k"); err != nil || !again.Replayed ||
						world.Same(res.Answer, again.Answer) != nil {
						t.Errorf("replayed %v, %v", again.Replayed, err)
					}
					if got := fmt.Sprint(foreign.taken[res.OperationID]); got != "[a b c]" {
						t.Errorf("steps taken: %s", got)
					}
				})
			}
		}
	}
}
