//go:build linux || darwin

package devpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPause is how long we wait between tries for a lock that another process holds: far below what
// starting a server takes, far above what a try costs.
const lockPause = 20 * time.Millisecond

// errBusy says that somebody else holds the lock.
var errBusy = errors.New("locked by another process")

// fileLock is a lock on a file. The kernel releases it when the process dies, in whatever way.
type fileLock struct{ f *os.File }

// tryLock takes the lock now or returns errBusy.
func tryLock(path string, exclusive bool) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	for {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return &fileLock{f}, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errBusy
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// lock waits for the lock until ctx ends.
func lock(ctx context.Context, path string, exclusive bool) (*fileLock, error) {
	for {
		l, err := tryLock(path, exclusive)
		if !errors.Is(err, errBusy) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s: %w", path, ctx.Err())
		case <-time.After(lockPause):
		}
	}
}

// TryLock locks a file for this process alone, or returns [ErrLocked] if another one has it. The
// kernel releases it when the process dies. The file stays.
func TryLock(path string) (unlock func(), err error) {
	l, err := tryLock(path, true)
	switch {
	case errors.Is(err, errBusy):
		return nil, ErrLocked
	case err != nil:
		return nil, err
	}
	return l.unlock, nil
}

// unlock releases the lock. Closing the file would not be enough: a child that is being forked at
// this moment holds a copy of the descriptor, and would keep the lock until it execs.
func (l *fileLock) unlock() {
	_ = syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN)
	_ = l.f.Close()
}
