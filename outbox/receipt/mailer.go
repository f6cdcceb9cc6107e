package receipt

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
)

// Work mails receipts until ctx ends; conversations that have begun end, with their results written. That takes a minute at most.
func (m *Mailer) Work(ctx context.Context) {
	for ctx.Err() == nil {
		again, err := m.step(ctx)
		if err != nil && ctx.Err() == nil {
			m.cfg.Log.WarnContext(ctx, "receipts cannot be read; they are read again", "cause", err)
		}
		if !again || err != nil {
			m.wait(ctx)
		}
	}
	m.going.Wait()
}

// Once mails all that is due and returns when nothing is. What fails is left for later; without a mail server that deals with us, so is the rest. Errors: the database's.
func (m *Mailer) Once(ctx context.Context) error {
	defer m.going.Wait()
	m.mu.Lock()
	m.once, m.away = true, 0
	m.mu.Unlock()
	for ctx.Err() == nil && m.room() >= 0 {
		again, err := m.step(ctx)
		if err != nil {
			return err
		}
		if !again && m.busy.Load() == 0 {
			return nil
		}
		if !again {
			m.wait(ctx)
		}
	}
	return nil
}

// step reads events, and begins to send what is due and there is room for. It tells whether there may be more to do at once.
func (m *Mailer) step(ctx context.Context) (again bool, err error) {
	if m.tidyNow() {
		abandoned, err := m.tidy(ctx)
		if err != nil {
			return false, err
		}
		if abandoned > 0 {
			m.cfg.Log.WarnContext(ctx, "receipts were being sent when their process ended: whether they arrived is not known, and they are not sent again", "receipts", abandoned)
		}
	}
	if m.held(ctx) {
		return false, nil
	}
	more, err := m.read(ctx)
	if err != nil {
		return false, err
	}
	begun, err := m.dispatch(ctx)
	return more || begun, err
}

// held reports whether nothing may be mailed at this moment: what waits here may have been mailed already.
func (m *Mailer) held(ctx context.Context) bool { return m.cfg.Held != nil && m.cfg.Held(ctx) != nil }

// wait waits until a mail has ended, or until there may be something new.
func (m *Mailer) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(around(lookEvery)):
	case <-m.ended:
	}
}

// room is how many mails may begin; negative: none any more in this pass.
func (m *Mailer) room() int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch busy := m.busy.Load(); {
	case m.away == 0:
		return atOnce - busy
	case m.once && m.away >= onceFailures:
		return -1
	case busy > 0, !m.once && time.Now().Before(m.resume):
		return 0
	}
	return 1
}

// noteAway notes whether a mail found a mail server that deals with us.
func (m *Mailer) noteAway(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !away {
		m.away = 0
		return
	}
	m.resume = time.Now().Add(around(min(awayPauseFirst<<min(m.away, 10), awayPauseMax)))
	m.away++
}

// dispatch claims what is due and begins to send it. It tells whether it found anything.
func (m *Mailer) dispatch(ctx context.Context) (bool, error) {
	room := m.room()
	if room <= 0 {
		return false, nil
	}
	// Without cancel, and not again when the answer is lost: what was claimed and is not known to us is not sent. That is the price, not a fault.
	var rows []db.ReceiptsClaimRow
	err := db.RetryConflict(ctx, func(ctx context.Context) (err error) {
		rows, err = m.queries.ReceiptsClaim(context.WithoutCancel(ctx), m.cfg.Pool, db.ReceiptsClaimParams{Oldest: Oldest, Most: room})
		return err
	})
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		if row.State == stateExpired {
			m.count(stateExpired, 0)
			m.cfg.Log.WarnContext(ctx, "a receipt could not be sent in time and is given up on", "charge_id", row.ChargeID, "attempts", row.Attempts)
			continue
		}
		m.busy.Add(1)
		m.going.Go(func() {
			m.deliver(context.WithoutCancel(ctx), row)
			m.busy.Add(-1)
			select {
			case m.ended <- struct{}{}:
			default: // it is known already
			}
		})
	}
	return len(rows) > 0, nil
}

// deliver sends a claimed receipt and writes down what came of it.
func (m *Mailer) deliver(ctx context.Context, row db.ReceiptsClaimRow) {
	began := time.Now()
	got := m.send(ctx, row, began)
	took := time.Since(began)
	m.noteAway(got.away)
	pause := m.pauseAfter(int(row.Attempts))
	var state string
	err := db.Retry(ctx, func(ctx context.Context) (err error) {
		state, err = m.queries.ReceiptSettle(ctx, m.cfg.Pool, db.ReceiptSettleParams{
			ChargeID: row.ChargeID, Attempts: row.Attempts, State: got.state, Code: got.code, Reason: m.fit(got.reason), Pause: pause, Oldest: Oldest,
		})
		return err
	})
	log := m.cfg.Log.With("charge_id", row.ChargeID, "attempt", row.Attempts)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		log.WarnContext(ctx, "the result of a receipt was not written: somebody changed its row", "result", got.state)
		return
	case err != nil:
		log.WarnContext(ctx, "the result of a receipt could not be written; it is not sent again", "result", got.state, "cause", err)
		return
	}
	m.count(state, took)
	reason := m.fit(got.reason, row.Address)
	switch state {
	case stateSent:
		log.DebugContext(ctx, "a receipt was sent")
	case statePending:
		log.InfoContext(ctx, "a receipt was not taken by the mail server and is tried again", "reason", reason, "in", pause.Round(time.Second))
	case stateRefused:
		log.WarnContext(ctx, "a receipt was refused by the mail server", "reason", reason)
	case stateUnknown:
		log.WarnContext(ctx, "whether the mail server has a receipt is not known; it is not sent again", "reason", reason)
	case stateExpired:
		log.WarnContext(ctx, "a receipt could not be sent in time and is given up on", "reason", reason)
	}
}

// fit makes a reason fit to be kept, or logged: short, and without secrets.
func (m *Mailer) fit(reason string, secrets ...string) string {
	return db.Clean(m.cfg.Server.redact(reason, secrets...), errorMax)
}

// send puts the mail together and hands it to the mail server.
func (m *Mailer) send(ctx context.Context, row db.ReceiptsClaimRow, now time.Time) answer {
	e, err := m.compose(row, now)
	if err != nil { // nothing that a later attempt would do better
		return answer{state: stateRefused, reason: "the mail cannot be put together: " + err.Error()}
	}
	return m.cfg.Server.send(ctx, e)
}

// pauseAfter is how long a receipt rests after its nth attempt.
func (m *Mailer) pauseAfter(attempts int) time.Duration {
	p := pauseMax
	if attempts < 20 {
		p = min(m.cfg.Pause<<max(attempts-1, 0), pauseMax)
	}
	return p/2 + around(p/2)
}

// around is a pause of about so long, from half to one and a half of it: so that many that wait do not come at the same moment.
func around(d time.Duration) time.Duration {
	return d/2 + rand.N(d+1) //nolint:gosec // a pause needs no cryptographic chance
}
