package receipt

import (
	"context"
	"time"

	"paidonce/db"
	"paidonce/internal/backoff"
	"paidonce/internal/loop"
)

// Work mails receipts until ctx ends. Conversations that have begun are completed, and their
// results stored, which takes a minute at most.
func (m *Mailer) Work(ctx context.Context) {
	loop.Loop{
		Step:  m.step,
		Every: pollEvery,
		Wake:  m.ended,
		Failed: func(err error, _ time.Duration) {
			m.cfg.Log.WarnContext(ctx, "receipts cannot be read; they are read again", "cause", err)
		},
	}.Run(ctx)
	m.running.Wait()
}

// RunOnce mails all that is due and returns when nothing is. What fails is left for later, and so
// is the rest when no mail server opens a session. Errors: the database's.
func (m *Mailer) RunOnce(ctx context.Context) error {
	defer m.running.Wait()
	m.mu.Lock()
	m.singlePass, m.away = true, 0
	m.mu.Unlock()
	for ctx.Err() == nil && m.capacity() >= 0 {
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

// step reads events, and begins to send as many due mails as may be under way. It reports whether
// there may be more to do at once.
func (m *Mailer) step(ctx context.Context) (again bool, err error) {
	if m.cleanUpDue() {
		abandoned, err := m.cleanUp(ctx)
		if err != nil {
			return false, err
		}
		if abandoned > 0 {
			m.cfg.Log.WarnContext(ctx,
				"receipts were being sent when their process ended: whether they arrived is not known, and they are not sent again",
				"receipts", abandoned)
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

// held reports whether nothing may be mailed at this moment, because what waits here may have been
// mailed already.
func (m *Mailer) held(ctx context.Context) bool {
	return m.cfg.Held != nil && m.cfg.Held(ctx) != nil
}

// wait waits until a mail has ended, or until there may be something new.
func (m *Mailer) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(backoff.About(pollEvery)):
	case <-m.ended:
	}
}

// capacity returns how many mails may begin now; a negative number means none in this pass.
func (m *Mailer) capacity() int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch busy := m.busy.Load(); {
	case m.away == 0:
		return mailsMax - busy
	case m.singlePass && m.away >= singlePassFailuresMax:
		return -1
	case busy > 0, !m.singlePass && time.Now().Before(m.resume):
		return 0
	}
	return 1
}

// noteAway notes whether a mail found no mail server that opened a session.
func (m *Mailer) noteAway(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !away {
		m.away = 0
		return
	}
	m.away++
	m.resume = time.Now().Add(awayPauses.After(m.away))
}

// dispatch claims due receipts and begins to send them. It reports whether it found any.
func (m *Mailer) dispatch(ctx context.Context) (bool, error) {
	free := m.capacity()
	if free <= 0 {
		return false, nil
	}
	// The claim is neither cancelled nor repeated when its answer is lost. A receipt that was
	// claimed by a lost answer is never sent, which is the price of at most once.
	rows, err := db.Write(context.WithoutCancel(ctx), m.cfg.Pool, m.queries.ReceiptsClaim,
		db.ReceiptsClaimParams{Oldest: Oldest, MaxRows: free})
	if err != nil {
		return false, err
	}
	for _, row := range rows {
		if row.State == stateExpired {
			m.count(stateExpired, 0)
			m.cfg.Log.WarnContext(ctx, "a receipt could not be sent in time and is given up on",
				"charge_id", row.ChargeID, "attempts", row.Attempts)
			continue
		}
		m.busy.Add(1)
		m.running.Go(func() {
			m.deliver(context.WithoutCancel(ctx), row)
			m.busy.Add(-1)
			select {
			case m.ended <- struct{}{}:
			default: // a wake-up is pending already
			}
		})
	}
	return len(rows) > 0, nil
}

// deliver sends a claimed receipt and stores the result.
func (m *Mailer) deliver(ctx context.Context, row db.ReceiptsClaimRow) {
	began := time.Now()
	got := m.send(ctx, row, began)
	took := time.Since(began)
	m.noteAway(got.away)
	pause := backoff.Policy{First: m.cfg.Pause, Max: pauseMax}.After(int(row.Attempts))
	state, found, err := db.Found(db.Repeat(ctx, m.cfg.Pool, m.queries.ReceiptSettle, db.ReceiptSettleParams{
		ChargeID: row.ChargeID, Attempts: row.Attempts, State: got.state, Code: got.code,
		Reason: m.fit(got.reason), Pause: pause, Oldest: Oldest,
	}))
	log := m.cfg.Log.With("charge_id", row.ChargeID, "attempt", row.Attempts)
	switch {
	case err != nil:
		log.WarnContext(ctx, "the result of a receipt could not be written; it is not sent again",
			"result", got.state, "cause", err)
		return
	case !found:
		log.WarnContext(ctx, "the result of a receipt was not written: somebody changed its row",
			"result", got.state)
		return
	}
	m.count(state, took)
	reason := m.fit(got.reason, row.Address)
	switch state {
	case stateSent:
		log.DebugContext(ctx, "a receipt was sent")
	case statePending:
		log.InfoContext(ctx, "a receipt was not taken by the mail server and is tried again",
			"reason", reason, "in", pause.Round(time.Second))
	case stateRefused:
		log.WarnContext(ctx, "a receipt was refused by the mail server", "reason", reason)
	case stateUnknown:
		log.WarnContext(ctx,
			"whether the mail server has a receipt is not known; it is not sent again",
			"reason", reason)
	case stateExpired:
		log.WarnContext(ctx, "a receipt could not be sent in time and is given up on",
			"reason", reason)
	}
}

// fit shortens a reason and removes secrets, so that it can be stored or logged.
func (m *Mailer) fit(reason string, secrets ...string) string {
	return db.Clean(m.cfg.Server.redact(reason, secrets...), errorMax)
}

// send writes the mail and hands it to the mail server.
func (m *Mailer) send(ctx context.Context, row db.ReceiptsClaimRow, now time.Time) answer {
	e, err := m.compose(row, now)
	if err != nil { // a later attempt would fail in the same way
		return answer{
			state: stateRefused, reason: "the mail cannot be put together: " + err.Error(),
		}
	}
	return m.cfg.Server.send(ctx, e)
}
