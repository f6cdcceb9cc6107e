package stripesim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// ledger is the append-only file. Whoever appends gets a ticket and waits for it: one flusher
// writes whatever queued up while the last fsync ran, so that many requests share one.
type ledger struct {
	file *os.File
	sync bool

	mu      sync.Mutex
	cond    *sync.Cond
	buf     []byte
	queued  int64 // tickets given out
	written int64 // tickets that are on disk
	err     error // sticky: after a failed write nothing is acknowledged any more
	closed  bool
	done    chan struct{}
}

var errClosed = errors.New("the simulator is closed")

// openLedger replays the file into apply and opens it for appending. A last line without its end is
// what a crash leaves of a write that nobody was answered for: it is cut off. Anything else that
// can't be read is an error.
func openLedger(path string, fsync bool, apply func(*record)) (*ledger, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the path is the operator's choice
	if err != nil {
		return nil, err
	}
	if err := lock(file); err != nil {
		return nil, errors.Join(fmt.Errorf("%s is in use by another process: %w", path, err), file.Close())
	}
	end, err := replay(file, apply)
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	l := &ledger{file: file, sync: fsync, done: make(chan struct{})}
	l.cond = sync.NewCond(&l.mu)
	go l.flusher()
	return l, nil
}

func replay(file *os.File, apply func(*record)) (end int64, err error) {
	in := bufio.NewReaderSize(file, 1<<20)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		rec := &record{}
		if err := json.Unmarshal(line, rec); err != nil {
			// Zeros or half a line can also be followed by a line end when the machine, not only
			// the process, went down in the middle of a write. Only the very last line may be like
			// that.
			if _, last := in.Peek(1); errors.Is(last, io.EOF) {
				return end, nil
			}
			return 0, fmt.Errorf("line %d: %w", n, err)
		}
		apply(rec)
		end += int64(len(line))
	}
}

// append queues a record. The caller holds the lock that orders records.
func (l *ledger) append(rec *record) (int64, error) {
	line, err := json.Marshal(rec)
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, l.err
	}
	if l.closed {
		return 0, errClosed
	}
	l.buf = append(append(l.buf, line...), '\n')
	l.queued++
	l.cond.Broadcast()
	return l.queued, nil
}

func (l *ledger) last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queued
}

// wait returns when the ticket's record is on disk, or an error when it will never be.
func (l *ledger) wait(ticket int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.written < ticket && l.err == nil {
		l.cond.Wait()
	}
	if l.written >= ticket {
		return nil
	}
	return l.err
}

func (l *ledger) flusher() {
	defer close(l.done)
	var spare []byte
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for len(l.buf) == 0 && !l.closed {
			l.cond.Wait()
		}
		if len(l.buf) == 0 {
			return
		}
		batch, ticket := l.buf, l.queued
		l.buf = spare[:0]
		l.mu.Unlock()
		err := l.write(batch)
		l.mu.Lock()
		spare = batch
		if err != nil {
			l.err = err
			l.cond.Broadcast()
			return
		}
		l.written = ticket
		l.cond.Broadcast()
	}
}

func (l *ledger) write(batch []byte) error {
	// A reset needs nothing of what came before it. The file is emptied first, so that it doesn't
	// grow over many runs.
	if i := bytes.LastIndex(batch, []byte(`{"op":"reset"}`+"\n")); i >= 0 && (i == 0 || batch[i-1] == '\n') {
		if err := l.file.Truncate(0); err != nil {
			return err
		}
		if _, err := l.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		batch = batch[i:]
	}
	if _, err := l.file.Write(batch); err != nil {
		return err
	}
	if l.sync {
		return l.file.Sync()
	}
	return nil
}

func (l *ledger) close() error {
	l.mu.Lock()
	l.closed = true
	l.cond.Broadcast()
	l.mu.Unlock()
	<-l.done
	l.mu.Lock()
	err := l.err
	if l.err == nil {
		l.err = errClosed
	}
	l.cond.Broadcast()
	l.mu.Unlock()
	return errors.Join(err, l.file.Close())
}
