//go:build !unix

package dbtest

import "syscall"

// ownSession is not needed where devpg, and so the reaper, does not run.
func ownSession() *syscall.SysProcAttr { return nil }
