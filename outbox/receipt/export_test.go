package receipt

import (
	"context"
	"net"
)

// Through returns the server with another way to it: so that one that is elsewhere can be tried
// here.
func (s Server) Through(dial func(ctx context.Context, network, address string) (net.Conn, error)) Server {
	s.dial = dial
	return s
}

// Send has one conversation, and says what came of it.
func (s Server) Send(ctx context.Context, from, to, message string) (state, reason string) {
	a := s.send(ctx, envelope{from: from, to: to, message: []byte(message)})
	return a.state, a.reason
}
