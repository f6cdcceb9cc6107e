//go:build unix

package stripe

import (
	"errors"
	"net"
	"syscall"
)

// quiet reports whether nothing has arrived on an idle connection, neither bytes nor its end. It
// doesn't wait. What it reads is lost, so a connection that isn't quiet is of no more use. One
// without a descriptor counts as quiet: writing on it shows.
func quiet(c net.Conn) bool {
	s, is := c.(syscall.Conn)
	if !is {
		return true
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	nothing := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, err := syscall.Read(int(fd), b[:])
		nothing = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && nothing
}
