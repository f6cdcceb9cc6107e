//go:build linux || darwin

package devpg

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// reapPause is the shortest nap between two looks: fifty a second were seen to take 3 % of a core.
const reapPause = 250 * time.Millisecond

// Reap waits until nobody has used the folder's servers for the given time, stops them, and returns; with remove it then
// removes the folder. It is for a process that outlives those that use the server and may be killed: the kernel drops their
// locks, and Reap notices. At most one runs for a folder; further ones return at once.
func Reap(dir string, idle time.Duration, remove bool) {
	self, err := tryLock(filepath.Join(dir, "reaper"), true)
	if err != nil {
		return
	}
	// A tenth of the idle time is a fair error for it. A reaper looks as long as tests run, so it must cost nothing next to
	// them; more than a second's nap would be slow to notice a removed folder.
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

// stopAll stops all servers of a folder, if nobody uses any, and lets go of the reaper's lock before it lets anybody start
// one again: who starts one then finds that there is no reaper, and gets itself one.
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

// clusters returns those whose data are in a folder, with no more in them than stopping needs.
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
