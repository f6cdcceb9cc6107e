package sim_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"paidonce/idemkeys"
	"paidonce/internal/world"
	"paidonce/provider"
)

// guardCuts is how to take a guard out of a statement.
type guardCuts map[string][][2]string // by name: patterns and what stands in their place

// cuts returns what takes guards out. A space in a pattern is any space, a new line too. A guard
// that is not found is a fault of the test. Parameters stay, or the statement would be refused.
func cuts(t *testing.T, c guardCuts) func(string) string {
	return func(sql string) string {
		for _, cut := range c[statementName(sql)] {
			pattern := regexp.MustCompile(strings.ReplaceAll(cut[0], " ", `\s+`))
			if !pattern.MatchString(sql) {
				t.Errorf("%s has no guard %q any more", statementName(sql), cut[0])
			}
			sql = pattern.ReplaceAllStringFunc(sql, func(found string) string {
				return cut[1] + world.Parameters(found)
			})
		}
		return sql
	}
}

// oftenMix is a mix for mutations: more of what makes a guard matter, in fewer steps.
func oftenMix(change func(*mix)) mix {
	m := usualMix
	m.jump, m.hold, m.steps = 0.6, 0.08, 320
	change(&m)
	return m
}

// mutations take guards out of the product. Where one guard hides another, both are out: what
// each is worth alone, idemkeys/zombie_test.go and the model (sim/model) show.
func mutations(t *testing.T) []mutation {
	slow := func(places ...string) func(*mix) {
		return func(m *mix) {
			m.places = map[string]float64{}
			for _, p := range places {
				m.places[p] = 0.1
			}
		}
	}
	days := []time.Duration{95 * time.Second, 25 * time.Hour}
	return []mutation{
		{seed: 3, name: "commit 2 without token, point, status and charge; events not unique", wants: "events",
			setup: "ALTER TABLE outbox DROP CONSTRAINT outbox_pkey",
			sql: cuts(t, guardCuts{"OutboxAdd": {{`ON CONFLICT \(event_id\) DO NOTHING`, ""}}, "ChargeSettle": {
				{`ON CONFLICT \(event_id\) DO NOTHING`, ""},
				{`AND k\.lease_token = x\.lease_token`, ""},
				{`AND k\.recovery_point = x\.recovery_point`, ""},
				{`AND k\.finished_at IS NULL`, ""}, {
					`AND coalesce\(c\.status = 'pending', false\) AND c\.provider_id IS NULL`, "",
				}}}),
			mix: oftenMix(slow("ChargeSettle"))},
		{seed: 4, name: "take-over without swap and staleness", wants: "was taken over",
			sql: cuts(t, guardCuts{"KeyTakeOver": {
				{
					`AND k\.lease_token IS NOT DISTINCT FROM \$\d+::text AND k\.attempts = \$\d+::integer`,
					"",
				},
				{
					`AND \(k\.lease_token IS NULL OR k\.locked_at <= clock_timestamp\(\) - \$\d+::interval\)`,
					"",
				}}}),
			mix: oftenMix(slow("KeyTakeOver", "Charge"))},
		{seed: 4, name: "a pass leases what is not stale", wants: "was taken over",
			sql: cuts(
				t,
				guardCuts{
					"KeyLeaseDue": {
						{`d\.locked_at <= clock_timestamp\(\) - \$\d+::interval`, "true"},
					},
				},
			), mix: oftenMix(slow("Charge"))},
		{seed: 3, name: "sweep by age, unfinished keys too", wants: "its key is there: false",
			sql: cuts(t, guardCuts{"KeySweep": {
				{
					`d\.expires_at <= \(SELECT clock_timestamp\(\)\) AND d\.status <> 'in_progress'`,
					"d.created_at <= clock_timestamp() - interval '24 hours'",
				},
				{
					`AND k\.expires_at <= clock_timestamp\(\) AND k\.status <> 'in_progress'`, "",
				}}}), mix: oftenMix(slow("KeyLeaseDue"))},
		{seed: 3, name: "retention from the claim", wants: "one key, two answers",
			sql: cuts(
				t,
				guardCuts{
					"ChargeSettle": {
						{`expires_at = clock_timestamp\(\)`, "expires_at = k.created_at"},
					},
				},
			), mix: oftenMix(slow("KeyLeaseDue"))},
		{seed: 139, name: "a key is forgotten without its operation and its condition", wants: "its key is there: false",
			sql: cuts(
				t,
				guardCuts{
					"KeyForget": {
						{
							`AND operation_id = \$3\s+AND \(status = 'failed' OR .*\)`,
							"AND ($3::text IS NULL OR true)",
						},
					},
				},
			),
			mix: oftenMix(slow("KeyForget"))},
		{seed: 84, name: "a look-up that failed counts as a miss", wants: "and the provider made a charge",
			lookup: func(hits []provider.Charge, _ error) (
				[]provider.Charge, error,
			) {
				return hits, nil
			},
			mix: oftenMix(
				func(m *mix) {
					m.lookupFault, m.only = 0.8, []string{"500 stored, effect", "dropped after"}
				},
			)},
		{seed: 200, name: "a read of a hold that failed counts as a miss", wants: "the hold: ",
			getCharge: func(c *provider.Charge, err error) (*provider.Charge, error) {
				if err == nil {
					return c, nil
				}
				return &provider.Charge{Status: provider.Succeeded}, nil
			},
			mix: oftenMix(
				func(m *mix) {
					m.lookupFault, m.only = 0.8, []string{"500 stored, effect", "dropped after"}
				},
			)},
		{seed: 2, name: "no window", wants: "past the window",
			sql: cuts(t, guardCuts{
				"KeyRead": {{
					`coalesce\(k\.first_attempt_at > clock_timestamp\(\) - \$\d+::interval, true\)`,
					"true",
				}},
				"KeyLeaseDue": {
					{`\(first_attempt_at > clock_timestamp\(\) - \$\d+::interval\)`, "true"},
				}}),
			mix: oftenMix(func(m *mix) { m.only = []string{"dropped before", "never delivered"} })},
		{seed: 8, name: "no window, and a look-up that failed counts as a miss", wants: "the provider made 2 charges", atEnd: true,
			sql: cuts(t, guardCuts{
				"KeyRead": {{
					`coalesce\(k\.first_attempt_at > clock_timestamp\(\) - \$\d+::interval, true\)`,
					"true",
				}},
				"KeyLeaseDue": {
					{`\(first_attempt_at > clock_timestamp\(\) - \$\d+::interval\)`, "true"},
				}}),
			lookup: func(hits []provider.Charge, _ error) (
				[]provider.Charge, error,
			) {
				return hits, nil
			},
			mix: oftenMix(
				func(m *mix) {
					m.lookupFault, m.only, m.jumps = 0.8, []string{"dropped after"}, days
				},
			)},
		{seed: 9, name: "one miss proves absence", wants: "the provider made a charge", misses: 1,
			cfg: func(c *idemkeys.Config) { c.LookupSpan = 0 },
			mix: oftenMix(func(m *mix) {
				m.jump, m.crash, m.lookupFault, m.arrive = 0.02, 0, 0, 0.05
				m.fault, m.only = 1, []string{"delivered late", "500 not stored", "500 not stored"}
			})},
		{seed: 3, name: "an unknown outcome taken for not executed", wants: "the provider made 2 charges", atEnd: true,
			chargeError: func(err error) error {
				var e *provider.Error
				if errors.As(err, &e) && e.Kind == provider.Unknown {
					return &provider.Error{Kind: provider.NotExecuted, Message: e.Message}
				}
				return err
			}, mix: oftenMix(func(m *mix) { m.only, m.jumps = []string{"dropped after"}, days })},
		{seed: 1, name: "a forgotten key is claimed anew", wants: "one key, two answers|another request than its own|of an operation that was never claimed",
			sql: cuts(t, guardCuts{"ChargeClaim": {{
				`AND NOT EXISTS \(SELECT FROM recovered_keys r WHERE r\.account_id = x\.account_id\s+AND r\.key_hash = sha256\(convert_to\(x\.account_id \|\| ' ' \|\| x\.key, 'UTF8'\)\)\s+OFFSET 0\)`,
				"",
			}}}),
			mix: oftenMix(func(m *mix) { m.restore, m.fault, m.jump = 0.06, 0.1, 0.05 })},
		{seed: 1, name: "what the database forgot is not rebuilt", wants: "not in our books|one key, two answers", forgets: true,
			mix: oftenMix(func(m *mix) { m.restore, m.fault, m.jump = 0.06, 0.1, 0.05 })},
		{seed: 62, name: "an operation whose key stands for a later one keeps it", wants: "not the last that answered it|older answer was told",
			sql: func(sql string) string { // it is noticed if this changes nothing
				return strings.Replace(
					sql, "key = $1::text || k.operation_id",
					"key = CASE WHEN $1::text = '' THEN '' ELSE k.key END", 1,
				)
			},
			mix: oftenMix(func(m *mix) {
				m.fault, m.hold, m.only = 0.8, usualMix.hold, []string{"dropped after"}
				m.jump, m.jumps = 0.06, []time.Duration{25 * time.Hour}
			})},
		{seed: 5, name: "neither a look nor an index for references", wants: "one order was paid by",
			setup: "DROP INDEX charges_one_live_reference",
			sql: cuts(t, guardCuts{"ChargeClaim": {{
				`AND \(x\.reference = '' OR x\.duplicate_of <> '' OR NOT EXISTS \(SELECT FROM charges r\s+WHERE r\.account_id = x\.account_id AND r\.reference = x\.reference\s+AND r\.livemode = x\.livemode AND r\.status <> 'failed'\s+AND coalesce\(r\.release, 'pending'\) = 'pending'\s+AND \(NOT r\.captured OR r\.amount_refunded < r\.amount_captured\)\s+OFFSET 0\)\)`,
				"",
			}}}), mix: usualMix},
		{seed: 3, name: "a new derived key at each attempt", wants: "with other parameters",
			request: func(q provider.ChargeRequest, r *run) provider.ChargeRequest {
				q.IdempotencyKey += fmt.Sprint(r.step)
				return q
			}, mix: oftenMix(
				func(m *mix) { m.only = []string{"dropped before", "never delivered"} },
			)},
	}
}

// TestSimulationNoticesMissingGuards: a simulation that finds nothing looks like a product without
// faults.
func TestSimulationNoticesMissingGuards(t *testing.T) {
	t.Parallel()
	for _, m := range mutations(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			l := newLane(t)
			if m.setup != "" {
				if err := l.exec(m.setup); err != nil {
					t.Fatal(err)
				}
			}
			began, wants := time.Now(), regexp.MustCompile(m.wants)
			const bound = 250
			for i := range uint64(bound + 1) {
				var counts tally
				seed := i
				if i == 0 {
					seed = m.seed
				}
				r := simulate(t, l, seed, m, &counts)
				for _, f := range r.failures {
					if strings.Contains(f, "the test's own") ||
						strings.Contains(f, "come to rest") {
						t.Fatal(f)
					}
					if wants.MatchString(f) {
						t.Logf(
							"seed %d, %v: %s", seed, time.Since(began).Round(time.Millisecond), f,
						)
						return
					}
				}
			}
			t.Errorf("%d seeds noticed nothing", bound)
		})
	}
}
