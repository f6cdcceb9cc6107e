//go:build linux || darwin

package devpg

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// reapPause is the shortest pause between two checks: fifty checks a second took 3 % of a core.
const reapPause = 250 * time.Millisecond

// Reap waits until nobody has used the folder's servers for the given time, stops them, and
// returns; with remove it then removes the folder. It is for a process that outlives those that use
// the server and may be killed: the kernel drops their locks, and Reap notices. At most one runs
// for a folder; further ones return at once.
func Reap(dir string, idle time.Duration, remove bool) {
	self, err := tryLock(filepath.Join(dir, "reaper"), true)
	if err != nil {
		return
	}
	// A tenth of the idle time is a fair error for it. A reaper runs as long as the tests do, so it
	// must cost nothing beside them; but with pauses of more than a second it would be slow to
	// notice a removed folder.
	nap := min(max(idle/10, reapPause), time.Second)
	for since := time.Now(); ; time.Sleep(nap) {
		if _, err := os.Stat(dir); err != nil {
			self.unlock()
			return
		}
		if used(dir) {
			since = time.Now()
		} else if time.Since(since) >= idle && stopAll(dir, self) {
			if remove {
				_ = os.RemoveAll(dir)
			}
			return
		}
	}
}

// stopAll stops all servers of a folder, if nobody uses any. It releases the reaper's lock before
// anybody can start a server again: whoever does then finds no reaper, and starts one.
func stopAll(dir string, self *fileLock) bool {
	all := clusters(dir)
	for _, c := range all {
		control, err := tryLock(c.file("control"), true)
		if err != nil {
			return false // somebody starts or stops it right now
		}
		defer control.unlock()
	}
	for _, c := range all {
		if stopped, err := c.stopUnused(); err != nil || !stopped {
			return false
		}
	}
	self.unlock()
	return true
}

// clusters returns the clusters of a folder, with only the fields that stopping needs.
func clusters(dir string) []*cluster {
	var all []*cluster
	entries, _ := os.ReadDir(dir) // none: nothing to stop
	for _, e := range entries {
		major, isUsers := strings.CutPrefix(e.Name(), "users")
		if n, err := strconv.Atoi(major); isUsers && err == nil {
			all = append(all, &cluster{dir: dir, progs: programs{major: n}})
		}
	}
	return all
}

func used(dir string) bool {
	for _, c := range clusters(dir) {
		l, err := tryLock(c.file("users"), true)
		if err != nil {
			return true
		}
		l.unlock()
	}
	return false
}
