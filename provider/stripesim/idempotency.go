package stripesim

import (
	"net/http"
	"time"
)

// post runs a POST under Stripe's rules for idempotency keys: a finished key replays, a running one
// is a conflict, another request under the key is refused, and what is refused before it runs
// leaves the key unused.
//
// A client that hangs up doesn't stop anything here: what has begun is finished and remembered, as
// with Stripe.
func (s *Server) post(c *call) answer {
	if c.key != "" {
		if a, known := s.begin(c); known {
			return a
		}
		defer s.release(c.key, c.request) // does nothing once the answer is stored
	}
	run, bad := s.prepare(c)
	if bad != nil {
		s.counts.refused.Add(1)
		return bad.answer()
	}
	if c.fault != nil {
		s.pause(c.fault.DelayMS)
		if c.fault.Type == StatusBefore { // with store; without it the request never comes here
			run = func(*state) (*record, *apiError) { return nil, errorFor(c.fault.Status) }
		}
	}
	return s.execute(c, run)
}

// begin reserves the key, or gives the answer that it already stands for.
func (s *Server) begin(c *call) (answer, bool) {
	printed := c.params.fingerprint(c.path)
	now := s.now().UnixNano()
	s.mu.Lock()
	k := s.state.keys[c.key]
	if k != nil && k.done && now-k.at >= s.window.Load() {
		k = nil // forgotten
	}
	if k == nil {
		s.state.keys[c.key] = &keyEntry{print: printed, path: c.path, at: now, request: c.request}
		s.mu.Unlock()
		return answer{}, false
	}
	found := *k
	s.mu.Unlock()
	switch {
	case found.path != c.path:
		s.counts.mismatched.Add(1)
		return mismatch("Keys for idempotent requests can only be used for the same endpoint they were first used for ('" +
			c.path + "' vs '" + found.path + "'). Try using a key other than '" + c.key + "' if you meant to execute a different request."), true
	case found.print != printed:
		s.counts.mismatched.Add(1)
		return mismatch("Keys for idempotent requests can only be used with the same parameters they were first used with. " +
			"Try using a key other than '" + c.key + "' if you meant to execute a different request."), true
	case !found.done:
		s.counts.inUse.Add(1)
		return inUse(c.key).answer(), true
	}
	if err := s.settled(); err != nil {
		return answer{}, true
	}
	s.counts.replayed.Add(1)
	a := answer{status: found.status, body: found.raw, replayed: true, original: found.request}
	if a.body == nil {
		a.body = rendered(found.answer)
	}
	return a, true
}

func mismatch(message string) answer {
	e := &apiError{Status: http.StatusBadRequest, Type: typeIdempotency, Message: message}
	return e.answer()
}

// release frees a reservation that came to nothing.
func (s *Server) release(key, request string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.state.keys[key]; k != nil && !k.done && k.request == request {
		delete(s.state.keys, key)
	}
}

// execute does the work, and stores effect and answer in one record. The answer goes out only when
// that is on disk.
func (s *Server) execute(c *call, run work) answer {
	s.mu.Lock()
	rec, bad := run(s.state)
	if rec == nil {
		rec = &record{Op: opKey}
	}
	rec.At, rec.Request = s.now().Unix(), c.request
	a := answer{status: http.StatusOK, original: c.request}
	var raw []byte
	switch {
	case c.fault != nil && c.fault.stores():
		a.status = c.fault.Status
		raw = c.fault.body()
		a.body = raw
	case bad != nil:
		a.status = bad.Status
		a.body = rendered(bad)
	}
	if c.key != "" {
		at := s.now().UnixNano()
		if k := s.state.keys[c.key]; k != nil {
			at = k.at
		}
		rec.Key = &keyRecord{
			Name: c.key, Path: c.path, Print: c.params.fingerprint(c.path), At: at, Status: a.status, Err: bad, Raw: string(raw),
		}
	}
	if rec.Op == opKey && rec.Key == nil { // an error without a key: nothing to remember
		s.mu.Unlock()
		return a
	}
	ticket, err := s.commit(rec)
	s.mu.Unlock()
	if err != nil || s.durable(ticket) != nil {
		return answer{}
	}
	s.counts.done(rec, bad)
	if a.body == nil {
		a.body = rendered(rec.answer())
	}
	a.events = rec.made
	return a
}

func (s *Server) pause(ms int) {
	if ms <= 0 {
		return
	}
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.closing.Done():
	}
}
