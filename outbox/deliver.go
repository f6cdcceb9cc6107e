package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"paidonce/db"
)

const (
	// Pauses after a failure start here, double, and stop growing at the maximum: some twenty attempts in three days. A quarter of each is random, in either
	// direction, so that what failed together does not come back together.
	pauseFirst = 5 * time.Second
	pauseMax   = 8 * time.Hour
	// retryAfterMax bounds what an endpoint may ask for: longer, and one wrong header would be the end of it.
	retryAfterMax = 24 * time.Hour
	// patience is how long a delivery is tried; then it, or its endpoint, is given up on.
	patience = 72 * time.Hour
	// attemptsMin is how often it is tried at least, however long no relay was running.
	attemptsMin = 10
	// blockingAttempts is how often the first of an object's events is tried before later ones go ahead of it: about two and a half minutes. Their sequence numbers tell
	// consumers, and one event that a consumer cannot take must not stop the rest.
	blockingAttempts = 6
	errorMax         = 500 // bytes kept of a reason
)

// tried is what came of an attempt.
type tried struct {
	claim     db.DeliveryClaimRow
	endpoint  db.DeliveryDueEndpointsRow
	answer    Answer
	delivered bool
	first     bool // its endpoint took all so far, and failed now
	reason    string
	pause     time.Duration
}

func (t tried) key() string { return deliveryKey(t.claim.Endpoint, t.claim.EventID) }

func deliveryKey(endpoint int64, eventID string) string {
	return strconv.FormatInt(endpoint, 10) + " " + eventID
}

// deliver makes one attempt and writes down what came of it.
func (r *Relay) deliver(ctx context.Context, e db.DeliveryDueEndpointsRow, row db.DeliveryClaimRow, claimed time.Time) {
	if time.Since(claimed) > r.cfg.Lease-min(leaseMargin, r.cfg.Lease/2) { // this process was stopped in between: by now it may be somebody else's
		return
	}
	began := time.Now()
	answer, err := r.cfg.Sender.Send(ctx, Message{URL: e.Url, Secrets: e.Secrets, EventID: row.EventID, Payload: row.Payload})
	took := time.Since(began)
	t := tried{claim: row, endpoint: e, answer: answer, delivered: err == nil && answer.Status >= 200 && answer.Status < 300}
	switch {
	case err != nil:
		t.reason = db.Clean(err.Error(), errorMax)
	case !t.delivered:
		t.reason = fmt.Sprintf("it answered %d %s", answer.Status, http.StatusText(answer.Status))
	}
	if !t.delivered {
		t.pause = r.pauseAfter(int(row.Attempts), answer.RetryAfter)
	}
	t.first = r.noteResult(row.Endpoint, t.delivered) && !e.Failing // another relay may have told of it, or this one before a restart
	settled, held, err := r.settle.Do(ctx, t)
	log := r.cfg.Log.With("event_id", row.EventID, "type", row.Type, "endpoint", e.ID, "account", e.AccountID, "attempt", row.Attempts)
	switch {
	case err != nil:
		r.cfg.Attempted("lost", took)
		log.WarnContext(ctx, "the result of a delivery could not be written; it is repeated when its lease is over", "delivered", t.delivered, "cause", err)
	case !held:
		r.cfg.Attempted("lost", took)
		log.InfoContext(ctx, "the lease of a delivery was lost; its result is left to who has it", "delivered", t.delivered)
	default:
		r.report(ctx, t, settled, took)
	}
}

// report counts what was written down, and says what a person may want to know.
func (r *Relay) report(ctx context.Context, t tried, settled db.DeliverySettleRow, took time.Duration) {
	log := r.cfg.Log.With("event_id", t.claim.EventID, "type", t.claim.Type, "endpoint", t.endpoint.ID, "account", t.endpoint.AccountID, "attempt", t.claim.Attempts)
	switch {
	case t.delivered:
		r.counts.delivered.Add(1)
		r.cfg.Attempted("delivered", took)
		log.DebugContext(ctx, "delivered")
	case settled.State == "dead":
		r.counts.dead.Add(1)
		r.cfg.Attempted("dead", took)
		log.ErrorContext(ctx, "an event was given up on: its endpoint takes others, but not this one; `paidonce events resend` sends it again", "reason", t.reason)
	default:
		r.counts.failed.Add(1)
		r.cfg.Attempted("failed", took)
		level := slog.LevelInfo
		if t.first { // once, so that who watches is told, and an endpoint that is away for long fills no log
			level = slog.LevelWarn
		}
		log.Log(ctx, level, "a delivery failed and is tried again", "reason", t.reason, "in", t.pause.Round(time.Second))
	}
}

// writeSettled writes the results of everybody who ended at this moment.
func (r *Relay) writeSettled(ctx context.Context, results []tried) (map[string]db.DeliverySettleRow, error) {
	p := db.DeliverySettleParams{AttemptsMin: attemptsMin, Patience: patience, HalfPatience: patience / 2}
	endpoints := map[int64]db.DeliveryDueEndpointsRow{}
	for _, t := range results {
		p.Endpoints = append(p.Endpoints, t.claim.Endpoint)
		p.EventIds = append(p.EventIds, t.claim.EventID)
		p.Claims = append(p.Claims, t.claim.Claims)
		p.Delivered = append(p.Delivered, t.delivered)
		p.Gone = append(p.Gone, t.answer.Status == http.StatusGone)
		p.PauseMs = append(p.PauseMs, t.pause.Milliseconds())
		p.Statuses = append(p.Statuses, int16(t.answer.Status)) //nolint:gosec // three digits
		p.Bodies = append(p.Bodies, t.answer.Body)
		p.Errors = append(p.Errors, t.reason)
		endpoints[t.claim.Endpoint] = t.endpoint
	}
	rows, err := r.store.queries.DeliverySettle(ctx, r.store.pool, p)
	if err != nil {
		return nil, err
	}
	settled := make(map[string]db.DeliverySettleRow, len(rows))
	disabled := map[int64]bool{}
	for _, row := range rows {
		settled[deliveryKey(row.Endpoint, row.EventID)] = row
		if row.Disabled && !disabled[row.Endpoint] {
			disabled[row.Endpoint] = true
			r.counts.disabled.Add(1)
			e := endpoints[row.Endpoint]
			r.cfg.Log.ErrorContext(ctx, "a webhook endpoint is disabled: its deliveries wait until it is registered again", "endpoint", e.ID, "account", e.AccountID)
		}
	}
	return settled, nil
}

// pauseAfter is how long a delivery rests after its nth attempt: what grows with each, or what the endpoint asked for if that is longer.
func (r *Relay) pauseAfter(attempts int, asked time.Duration) time.Duration {
	p := r.cfg.Pause
	for n := 1; n < attempts && p < pauseMax; n++ {
		p *= 2
	}
	p = min(p, pauseMax)
	p = p/2 + around(p/2)
	if asked = min(asked, retryAfterMax); asked > p {
		return asked + around(asked/20)
	}
	return p
}

// around is a pause of about so long, from half to one and a half of it: so that many that wait do not come at the same moment.
func around(d time.Duration) time.Duration {
	return d/2 + rand.N(d+1) //nolint:gosec // a pause needs no cryptographic chance
}
