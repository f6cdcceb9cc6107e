package api

import (
	"context"
	"sync"
	"time"
)

// listWait is how long a list waits for its place: many times what a page takes, and not so long that its caller gives up.
const listWait = 2 * time.Second

// listsBusy is the answer to a list that found no place.
func listsBusy() *apiError {
	f := faultUnavailable
	f.message = "Too many lists are being read at the moment. Ask for this one again later."
	return f.because(nil)
}

// places bounds how many lists are read at a time, all in all and of one account. A list that turns out slow, by a lock or a
// bad plan, holds a connection to the database until its time is over; without a bound some would hold all of them, and what
// takes a millisecond would wait for them. A nil *places has no bound.
type places struct {
	all  chan struct{}
	each int // of one account: so that its lists leave places to others'

	mu       sync.Mutex
	accounts map[string]*accountPlaces
}

// accountPlaces is forgotten when nobody uses it.
type accountPlaces struct {
	taken chan struct{}
	users int
}

func newPlaces(most int) *places {
	if most <= 0 {
		return nil
	}
	return &places{all: make(chan struct{}, most), each: max(1, most*2/3), accounts: map[string]*accountPlaces{}}
}

// take waits for a place, for as long as a list does or until ctx ends. Whoever gets one must call release.
func (p *places) take(ctx context.Context, account string) (release func(), ok bool) {
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

func (p *places) join(account string) *accountPlaces {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.accounts[account]
	if own == nil {
		own = &accountPlaces{taken: make(chan struct{}, p.each)}
		p.accounts[account] = own
	}
	own.users++
	return own
}

func (p *places) leave(account string, own *accountPlaces) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(p.accounts, account)
	}
}
