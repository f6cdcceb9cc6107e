package api

import (
	"context"
	"sync"
	"time"

	"paidonce/problem"
)

// listWait is how long a list waits for its turn: many times what a page takes, and not so long
// that its caller gives up.
const listWait = 2 * time.Second

// listsBusy is the answer to a list whose turn did not come in time.
func listsBusy() *problem.Error {
	e := problem.Unavailable.New()
	e.Message = "Too many lists are being read at the moment. Ask for this one again later."
	return e
}

// listSlots bounds how many lists are read at a time, all in all and of one account. A list that
// turns out slow, by a lock or a bad plan, holds a connection to the database until its time is
// over; without a bound some would hold all of them, and what takes a millisecond would wait for
// them. A nil *listSlots has no bound.
type listSlots struct {
	all  chan struct{}
	each int // of one account: so that its lists leave slots to others

	mu       sync.Mutex
	accounts map[string]*accountSlots
}

// accountSlots is forgotten when nobody uses it.
type accountSlots struct {
	taken chan struct{}
	users int
}

func newListSlots(limit int) *listSlots {
	if limit <= 0 {
		return nil
	}
	return &listSlots{
		all: make(chan struct{}, limit), each: max(1, limit*2/3),
		accounts: map[string]*accountSlots{},
	}
}

// take waits for a slot, for as long as a list does or until ctx ends. Whoever gets one must call
// release.
func (p *listSlots) take(ctx context.Context, account string) (release func(), ok bool) {
	if p == nil {
		return func() {}, true
	}
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	own := p.join(account)
	select {
	case own.taken <- struct{}{}:
	case <-ctx.Done():
		p.leave(account, own)
		return nil, false
	}
	select {
	case p.all <- struct{}{}:
	case <-ctx.Done():
		<-own.taken
		p.leave(account, own)
		return nil, false
	}
	return func() {
		<-p.all
		<-own.taken
		p.leave(account, own)
	}, true
}

func (p *listSlots) join(account string) *accountSlots {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.accounts[account]
	if own == nil {
		own = &accountSlots{taken: make(chan struct{}, p.each)}
		p.accounts[account] = own
	}
	own.users++
	return own
}

func (p *listSlots) leave(account string, own *accountSlots) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(p.accounts, account)
	}
}
