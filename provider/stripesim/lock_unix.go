//go:build unix

package stripesim

import (
	"os"
	"syscall"
)

// lock claims a file for this process; the system lets go of it when the process ends, however that
// happens.
func lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
