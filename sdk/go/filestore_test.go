package paidonce

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestFileStore(t *testing.T) {
	t.Parallel()
	tryStore(t, FileStore(filepath.Join(t.TempDir(), "a[b]"))) // no pattern
	if open, err := FileStore(filepath.Join(t.TempDir(), "none")).Unfinished(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("%v %v", open, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := FileStore(file).Unfinished(t.Context()); err == nil {
		t.Error("what cannot be read is not empty")
	}
}

// The folders are on the disk, too, before anything is sent.
func TestFileStoreIsOnTheDisk(t *testing.T) { //nolint:paralleltest // it watches what all stores bring to the disk
	above, synced := t.TempDir(), []string(nil)
	fsync = func(f *os.File) error {
		name := strings.TrimPrefix(f.Name(), above)
		if filepath.Ext(name) == ".new" {
			name = filepath.Join(filepath.Dir(name), "file")
		}
		synced = append(synced, name)
		return f.Sync()
	}
	defer func() { fsync = (*os.File).Sync }()
	folder := filepath.Join(above, "a", "b")
	store := FileStore(folder)
	op := Operation{
		Name: "op", Key: "k", Path: "/v1/charges", Body: []byte(`{}`), Begun: time.UnixMilli(7),
	}
	for _, step := range []struct {
		do   func() error
		want []string
	}{
		{func() error {
			_, err := store.Begin(t.Context(), op)
			return err
		}, []string{"", "/a", "/a/b/file", "/a/b"}},
		// whoever else has begun it
		{func() error {
			_, err := store.Begin(t.Context(), op)
			return err
		}, []string{"/a/b/file", "/a/b"}},
		{func() error { return store.Finish(t.Context(), op) }, []string{"/a/b/file", "/a/b"}},
	} {
		if err := step.do(); err != nil || !slices.Equal(synced, step.want) {
			t.Errorf("%v, on the disk are %q, want %q", err, synced, step.want)
		}
		synced = nil
	}
}

// tryStore holds a store to what the interface says.
func tryStore(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	const name = `a/b "c" '; ü`
	keys := make([]string, 20)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			op, err := s.Begin(ctx, Operation{
				Name: name, Key: string(rune('a' + i)), Path: "/v1/charges", Body: []byte(`{}`),
				Begun: time.UnixMilli(7),
			})
			if err != nil {
				t.Error(err)
			}
			keys[i] = op.Key
		})
	}
	all.Wait()
	if slices.Sort(keys); keys[0] != keys[19] {
		t.Errorf("several keys were taken for one operation: %v", keys)
	}
	if open, err := s.Unfinished(ctx); err != nil || len(open) != 1 {
		t.Errorf("%v %v", open, err)
	}
	op, err := s.Find(ctx, name)
	if err != nil || op == nil || op.Key != keys[0] || string(op.Body) != `{}` ||
		op.Begun.UnixMilli() != 7 {
		t.Fatalf("%+v %v", op, err)
	}
	op.Answer = &Answer{Status: 201, RequestID: "req_1", Body: []byte(chargeJSON)}
	if err := s.Finish(ctx, *op); err != nil {
		t.Fatal(err)
	}
	got, err := s.Find(ctx, name)
	if err != nil || got.Answer == nil || got.Answer.Status != 201 ||
		string(got.Answer.Body) != chargeJSON || !json.Valid(got.Answer.Body) {
		t.Errorf("%+v %v", got, err)
	}
	if open, err := s.Unfinished(ctx); err != nil || len(open) != 0 {
		t.Errorf("%v %v", open, err)
	}
	if err := s.Forget(ctx, name); err != nil {
		t.Error(err)
	}
	if got, err := s.Find(ctx, name); err != nil || got != nil {
		t.Errorf("%+v %v", got, err)
	}
}
