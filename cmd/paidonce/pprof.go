package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"time"
)

// pprofHeaderTime is how long a request for a profile may take to arrive: it comes from the same
// machine. There is no limit for the answer, since a profile takes as long as is asked for.
const pprofHeaderTime = 5 * time.Second

// checkPprof refuses every address that others than users of this machine can reach: profiles tell
// what the process works on, and take its CPU, and nobody is asked for a key.
func (c *config) checkPprof(bad reporter) {
	if c.PprofListen == "" {
		return
	}
	at, err := netip.ParseAddrPort(c.PprofListen)
	if err != nil || !at.Addr().IsLoopback() {
		bad("PAIDONCE_PPROF_LISTEN", "must be a loopback address and a port, such as 127.0.0.1:6060, or empty: profiles are for this machine alone")
	}
}

// servePprof serves profiles of this process at an address, on a listener of their own; none if it
// is empty. With ctx it ends at once, and the profiles that are being taken with it.
func servePprof(ctx context.Context, address string, log *slog.Logger) error {
	if address == "" {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("PAIDONCE_PPROF_LISTEN: %w", err)
	}
	server := &http.Server{Handler: pprofHandler(), ReadHeaderTimeout: pprofHeaderTime}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("profiles are not served any more", "cause", err)
		}
	}()
	log.Info("serving profiles", "address", listener.Addr().String())
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

// pprofHandler has a mux of its own: on the one of net/http, which that package fills by itself,
// anything else of this process might serve it.
func pprofHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	return mux
}
