package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The line that dev printed leads to its own database, whichever version printed it.
func TestGivenDatabase(t *testing.T) {
	dir := t.TempDir()
	const ours = "postgres://postgres:secret@127.0.0.1:20001/paidonce?sslmode=disable"
	if err := os.WriteFile(filepath.Join(dir, devDatabaseURL), []byte(ours+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for set, given := range map[string]bool{
		// of a version without passwords
		"": false, ours: false,
		"postgres://postgres@127.0.0.1:20001/paidonce?sslmode=disable":     false,
		"postgres://postgres:secret@127.0.0.1:20001/other?sslmode=disable": true,
		"postgres://postgres@127.0.0.1:20002/paidonce?sslmode=disable":     true,
		"host=127.0.0.1": true,
	} {
		t.Setenv("DATABASE_URL", set)
		if got := givenDatabase(dir); got != given {
			t.Errorf("%q: got %v", set, got)
		}
	}
	if err := os.Remove(filepath.Join(dir, devDatabaseURL)); err != nil {
		t.Fatal(err)
	}
	if t.Setenv("DATABASE_URL", ours); !givenDatabase(dir) {
		t.Error("a folder without a database has one of its own")
	}
}
