//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// detach keeps Ctrl-C on the terminal from reaching the child. It ends when we close its standard
// input, which is after the API has drained.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
