//go:build unix

package dbtest

import "syscall"

// ownSession makes a process outlive its parent's terminal and process group.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
