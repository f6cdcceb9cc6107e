package e2e

import "syscall"

// ownGroup starts a process in a group of its own, and ends it with the tests, however they end.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
