package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Profiles are for this machine alone.
func TestPprofListensOnLoopbackOnly(t *testing.T) {
	for address, right := range map[string]bool{
		"": true, "127.0.0.1:6060": true, "[::1]:6060": true, "127.0.0.1:0": true, "127.8.9.10:6060": true,
		":6060": false, "0.0.0.0:6060": false, "[::]:6060": false, "10.0.0.1:6060": false, "192.0.2.1:6060": false, "localhost:6060": false,
		"profiles.example.com:6060": false, "127.0.0.1": false, "6060": false, "127.0.0.1:99999": false, "127.0.0.1:http": false,
	} {
		setEnv(t, "PAIDONCE_PPROF_LISTEN", address)
		_, err := loadConfig(0)
		if right != (err == nil) || err != nil && !strings.Contains(err.Error(), "\n  PAIDONCE_PPROF_LISTEN: ") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// They are at their own address while the server runs, and only if they are asked for.
func TestPprofIsServedAndStops(t *testing.T) {
	t.Parallel()
	serving, stop := context.WithCancel(t.Context())
	defer stop()
	if err := servePprof(serving, "", slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := servePprof(serving, address, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "PAIDONCE_PPROF_LISTEN") {
		t.Errorf("the address is taken: %v", err)
	}
	_ = listener.Close()
	if err := servePprof(serving, address, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{
		"/debug/pprof/": 200, "/debug/pprof/heap": 200, "/debug/pprof/goroutine?debug=1": 200, "/debug/pprof/profile?seconds=1": 200,
		"/debug/pprof/cmdline": 404, "/": 404, "/metrics": 404, "/v1/charges": 404,
	} {
		res, err := client.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	// A profile of an hour does not hold the end up.
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/pprof/trace?seconds=3600", http.NoBody)
		res, err := client.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		ended <- err
	}()
	time.Sleep(200 * time.Millisecond)
	stop()
	if err := <-ended; err == nil || ctx.Err() != nil {
		t.Errorf("the profile went on: %v", err)
	}
	client.CloseIdleConnections()
	if res, err := client.Get("http://" + address + "/debug/pprof/"); err == nil {
		_ = res.Body.Close()
		t.Error("profiles are served after the end")
	}
}
