package main

import (
	"runtime"
	"testing"
	"time"
)

func TestAfterEachCollection(t *testing.T) {
	t.Parallel()
	called := make(chan struct{}, 100)
	afterEachCollection(func() {
		select {
		case called <- struct{}{}:
		default:
		}
	})
	for range 3 {
		runtime.GC()
		select {
		case <-called:
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was called after a collection")
		}
	}
}
