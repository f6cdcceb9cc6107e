package apitest

import (
	"bytes"
	"testing"
)

// Wants fails the test unless the answer is that error.
func Wants(t testing.TB, a Answer, status int, code, param string) {
	t.Helper()
	if p := a.Error(); a.Code != status || p.Code != code || p.Param != param {
		t.Errorf("got %d %s %q (%s), want %d %s %q", a.Code, p.Code, p.Param, p.Message, status, code, param)
	}
	if a.Error().RequestID != a.Header.Get("Request-Id") {
		t.Errorf("the error names the request %s, the header %s", a.Error().RequestID, a.Header.Get("Request-Id"))
	}
}

// Created fails the test unless the answer is 201, and no replay.
func Created(t testing.TB, a Answer) {
	t.Helper()
	if a.Code != 201 || a.Replayed() {
		t.Errorf("got %d (replayed %t) %s, want 201, not replayed", a.Code, a.Replayed(), a.Body)
	}
}

// Replays fails the test unless the second answer is a replay of the first.
func Replays(t testing.TB, first, second Answer) {
	t.Helper()
	if first.Replayed() || !second.Replayed() || second.Code != first.Code || !bytes.Equal(second.Body, first.Body) {
		t.Errorf("got %d %s, then %d (replayed %t) %s, want a replay", first.Code, first.Body, second.Code, second.Replayed(), second.Body)
	}
	for _, name := range []string{"Content-Type", "Location", "Content-Length"} {
		if first.Header.Get(name) != second.Header.Get(name) {
			t.Errorf("%s is %q, then %q, want the same", name, first.Header.Get(name), second.Header.Get(name))
		}
	}
	if second.Header.Get("Original-Request") != first.Header.Get("Request-Id") || second.Header.Get("Request-Id") == first.Header.Get("Request-Id") {
		t.Errorf("the Request-Id is %s, replayed as %s of %s", first.Header.Get("Request-Id"), second.Header.Get("Request-Id"), second.Header.Get("Original-Request"))
	}
}
