package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"paidonce/db"
	"paidonce/internal/backoff"
)

const (
	// Pauses after a failure grow from the first to the maximum: some twenty attempts in three
	// days.
	pauseFirst = 5 * time.Second
	pauseMax   = 8 * time.Hour
	// retryAfterMax bounds what an endpoint may ask for: without it one wrong header could stop its
	// deliveries forever.
	retryAfterMax = 24 * time.Hour
	// giveUpAfter is how long a delivery is tried. Then it is given up on, or its endpoint is
	// disabled.
	giveUpAfter = 72 * time.Hour
	// attemptsMin is how often a delivery is tried at least, however long no relay was running.
	attemptsMin = 10
	// blockingAttempts is how often the first of an object's events is tried before later ones go
	// ahead of it: about two and a half minutes. One event that a consumer cannot take must not
	// stop the rest, and consumers recognise the order by the sequence numbers.
	blockingAttempts = 6
	errorMax         = 500 // bytes kept of a reason
)

// attempt is an attempt and its result.
type attempt struct {
	claim     db.DeliveryClaimRow
	endpoint  db.DeliveryDueEndpointsRow
	answer    Answer
	delivered bool
	first     bool // the endpoint's first failure after a success
	reason    string
	pause     time.Duration
}

func (t attempt) key() string { return deliveryKey(t.claim.Endpoint, t.claim.EventID) }

func deliveryKey(endpoint int64, eventID string) string {
	return strconv.FormatInt(endpoint, 10) + " " + eventID
}

// deliver makes one attempt and stores its result.
func (r *Relay) deliver(
	ctx context.Context, e db.DeliveryDueEndpointsRow, row db.DeliveryClaimRow, claimed time.Time,
) {
	// This process was stopped meanwhile, and the lease may be another relay's by now.
	if time.Since(claimed) > r.cfg.Lease-min(leaseMargin, r.cfg.Lease/2) {
		return
	}
	began := time.Now()
	answer, err := r.cfg.Sender.Send(ctx, Message{
		URL: e.Url, Secrets: e.Secrets, EventID: row.EventID, Payload: row.Payload,
	})
	took := time.Since(began)
	t := attempt{
		claim: row, endpoint: e, answer: answer,
		delivered: err == nil && answer.Status >= 200 && answer.Status < 300,
	}
	switch {
	case err != nil:
		t.reason = db.Clean(err.Error(), errorMax)
	case !t.delivered:
		t.reason = fmt.Sprintf("it answered %d %s", answer.Status, http.StatusText(answer.Status))
	}
	if !t.delivered {
		t.pause = r.pauseAfter(int(row.Attempts), answer.RetryAfter)
	}
	// Another relay may have reported the failure already, or this one before a restart.
	t.first = r.noteResult(row.Endpoint, t.delivered) && !e.Failing
	settled, held, err := r.settle.Do(ctx, t)
	log := r.cfg.Log.With("event_id", row.EventID, "type", row.Type, "endpoint", e.ID,
		"account", e.AccountID, "attempt", row.Attempts)
	switch {
	case err != nil:
		r.cfg.OnAttempt("lost", took)
		log.WarnContext(ctx,
			"the result of a delivery could not be written; it is repeated when its lease is over",
			"delivered", t.delivered, "cause", err)
	case !held:
		r.cfg.OnAttempt("lost", took)
		log.InfoContext(ctx, "the lease of a delivery was lost; its result is left to who has it",
			"delivered", t.delivered)
	default:
		r.report(ctx, t, settled, took)
	}
}

// report counts the stored result, and logs what an operator may want to know.
func (r *Relay) report(
	ctx context.Context, t attempt, settled db.DeliverySettleRow, took time.Duration,
) {
	log := r.cfg.Log.With("event_id", t.claim.EventID, "type", t.claim.Type,
		"endpoint", t.endpoint.ID, "account", t.endpoint.AccountID, "attempt", t.claim.Attempts)
	switch {
	case t.delivered:
		r.counts.delivered.Add(1)
		r.cfg.OnAttempt("delivered", took)
		log.DebugContext(ctx, "delivered")
	case settled.State == "dead":
		r.counts.dead.Add(1)
		r.cfg.OnAttempt("dead", took)
		log.ErrorContext(ctx,
			"an event was given up on: its endpoint takes others, but not this one; `paidonce events resend` sends it again",
			"reason", t.reason)
	default:
		r.counts.failed.Add(1)
		r.cfg.OnAttempt("failed", took)
		level := slog.LevelInfo
		// An operator is warned once: an endpoint that is away for long must not fill the log.
		if t.first {
			level = slog.LevelWarn
		}
		log.Log(ctx, level, "a delivery failed and is tried again", "reason", t.reason,
			"in", t.pause.Round(time.Second))
	}
}

// writeSettled stores the results of a batch of attempts in one statement.
func (r *Relay) writeSettled(
	ctx context.Context, results []attempt,
) (map[string]db.DeliverySettleRow, error) {
	p := db.DeliverySettleParams{
		AttemptsMin: attemptsMin, Patience: giveUpAfter, HalfPatience: giveUpAfter / 2,
	}
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
			r.cfg.Log.ErrorContext(ctx,
				"a webhook endpoint is disabled: its deliveries wait until it is registered again",
				"endpoint", e.ID, "account", e.AccountID)
		}
	}
	return settled, nil
}

// pauseAfter returns how long a delivery waits after its nth attempt: a pause that grows with each
// attempt, or what the endpoint asked for if that is longer.
func (r *Relay) pauseAfter(attempts int, asked time.Duration) time.Duration {
	p := backoff.Policy{First: r.cfg.Pause, Max: pauseMax}.After(attempts)
	if asked = min(asked, retryAfterMax); asked > p {
		return asked + backoff.About(asked/20)
	}
	return p
}
