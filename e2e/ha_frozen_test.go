package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"paidonce/api/apitest"
	"paidonce/internal/dbtest"
)

// PostgreSQL stops answering for 20 s under load. Callers are told within seconds, nothing piles
// up, and all is well soon after.
func TestDatabaseFrozenForLong(t *testing.T) {
	if os.Getenv("PAIDONCE_HA") == "" {
		t.Skip("make ha runs it")
	}
	const (
		frozen  = 20 * time.Second
		callers = 40
		// a claim and a question to the database, each given up after 5 s, and a machine that is
		// shared
		bounded   = 15 * time.Second
		healthyIn = 10 * time.Second
	)
	server := dbtest.StartServer(t)
	w := newWorldOn(t, server.URL(), "PAIDONCE_PROVIDER_TIMEOUT=10s", "PAIDONCE_STALE_AFTER=30s")
	p := w.serve()
	c := w.client(p)
	stop := make(chan struct{})
	var done, unavailable, slowest, goroutines atomic.Int64
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				for key := fmt.Sprint("k-", i, "-", n); ; time.Sleep(400 * time.Millisecond) {
					began := time.Now()
					a, err := try(t, c, key, twenty)
					for took := int64(time.Since(began)); ; {
						if was := slowest.Load(); took <= was || slowest.CompareAndSwap(was, took) {
							break
						}
					}
					if err == nil && a.Code == http.StatusCreated {
						done.Add(1)
						break
					}
					if err == nil && a.Code == http.StatusServiceUnavailable {
						unavailable.Add(1)
					}
				}
			}
		})
	}
	eventually(t, "charges before", func() bool { return done.Load() >= 100 })
	family := postgresProcesses(t, server.URL())
	signalAll(family, syscall.SIGSTOP)
	t.Cleanup(func() { signalAll(family, syscall.SIGCONT) }) // a stopped server cannot be discarded
	for until := time.Now().Add(frozen); time.Now().Before(until); time.Sleep(time.Second) {
		goroutines.Store(max(goroutines.Load(), gauge(t, c, "go_goroutines")))
	}
	signalAll(family, syscall.SIGCONT)
	again := time.Now()
	before := done.Load()
	eventually(t, "charges afterwards", func() bool { return done.Load() >= before+callers })
	took := time.Since(again)
	close(stop)
	running.Wait()
	conns := querySQL[int](t, w.dbURL, "SELECT count(*) FROM pg_stat_activity WHERE datname = "+
		"current_database() AND pid <> pg_backend_pid()")
	t.Logf("%d charges, %d times 503, the slowest answer in %v, at most %d goroutines for %d "+
		"callers, %d connections; %d charges in %v after the freeze",
		done.Load(), unavailable.Load(), time.Duration(slowest.Load()).Round(time.Millisecond),
		goroutines.Load(), callers, conns, callers, took.Round(time.Millisecond))
	if unavailable.Load() == 0 || time.Duration(slowest.Load()) > bounded || took > healthyIn ||
		conns > 6 || goroutines.Load() > 20*callers {
		t.Errorf("want 503s within %v, at most 6 connections and %d goroutines, and health "+
			"within %v", bounded, 20*callers, healthyIn)
	}
	time.Sleep(time.Second)
	w.must("reconcile")
	w.sim.mustHave(t, int(done.Load()))
	w.checkBooks()
}

// gauge reads one from /metrics.
func gauge(t *testing.T, c *apitest.Client, name string) int64 {
	t.Helper()
	res, err := (&http.Client{Timeout: 10 * time.Second}).Get(c.BaseURL + "/metrics")
	if err != nil {
		t.Error(err)
		return 0
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
		return 0
	}
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
	if found == nil {
		t.Errorf("no %s in /metrics", name)
		return 0
	}
	v, _ := strconv.ParseFloat(string(found[1]), 64)
	return int64(v)
}
