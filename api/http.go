package api

import (
	"log/slog"
	"net/http"
	"time"
)

const (
	// Headers are small. A client that takes longer than this to send them wastes a connection.
	headerTimeout = 10 * time.Second
	// Reading a whole request: a body of one mebibyte over a slow line.
	bodyTimeout = 60 * time.Second
	// The whole exchange. Above the body's time, the longest wait a client may ask for and the
	// longest run of an operation together. An answer that is cut off by it is not lost: the same
	// key replays it.
	exchangeTimeout = 4 * time.Minute
	// How long a connection may be idle. Above the 60 seconds after which common load balancers let
	// go of theirs, so that the side that may retry closes first.
	idleTimeout = 75 * time.Second
	// All headers of a request; those of the API need a few hundred bytes.
	headerBytesMax = 32 << 10
)

// HTTP returns an http.Server for the API with limits on everything; the caller listens, serves and
// shuts down.
func (s *Server) HTTP() *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      exchangeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytesMax,
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelWarn),
	}
}
