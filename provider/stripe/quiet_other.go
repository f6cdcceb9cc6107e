//go:build !unix

package stripe

import "net"

// quiet can't be known here: each request gets a connection of its own.
func quiet(net.Conn) bool { return false }
