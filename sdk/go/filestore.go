package paidonce

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// FileStore stores each operation in its own file, in the folder of that name. Several processes of
// one machine may share the folder. The FileStores of Paidonce's libraries for other languages use
// the same files. The file system must have hard links.
type FileStore string

// Begin implements Store.
func (f FileStore) Begin(ctx context.Context, op Operation) (Operation, error) {
	written, err := f.write(op)
	if err != nil {
		return op, err
	}
	defer func() { _ = os.Remove(written) }()
	for {
		// Only one process creates a link, and a link never shows half a file.
		kept, err := &op, os.Link(written, f.file(op.Name))
		if errors.Is(err, fs.ErrExist) {
			kept, err = f.Find(ctx, op.Name)
		}
		if err != nil {
			return op, err
		}
		if kept != nil {
			// Sync even if another process created the link: it may not have done so yet, and we
			// are about to send.
			return *kept, syncFolder(string(f))
		}
		// The operation was forgotten meanwhile.
	}
}

// Find implements Store.
func (f FileStore) Find(_ context.Context, name string) (*Operation, error) {
	return read(f.file(name))
}

// Finish implements Store.
func (f FileStore) Finish(_ context.Context, op Operation) error {
	written, err := f.write(op)
	if err != nil {
		return err
	}
	if err := os.Rename(written, f.file(op.Name)); err != nil { //nolint:gosec // the caller says where
		return err
	}
	return syncFolder(string(f))
}

// Forget implements Store.
func (f FileStore) Forget(_ context.Context, name string) error {
	if err := os.Remove(f.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Unfinished implements Store.
func (f FileStore) Unfinished(context.Context) ([]Operation, error) {
	files, err := os.ReadDir(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var open []Operation
	for _, file := range files {
		if filepath.Ext(file.Name()) != ".json" {
			continue
		}
		op, err := read(filepath.Join(string(f), file.Name()))
		if err != nil {
			return nil, err
		}
		if op != nil && op.Answer == nil {
			open = append(open, *op)
		}
	}
	return open, nil
}

// file returns the file of a name. It is named after a hash, since a name may have characters that
// a file's may not.
func (f FileStore) file(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(string(f), hex.EncodeToString(sum[:])+".json")
}

// write writes the operation to a file of another name, and syncs it.
func (f FileStore) write(op Operation) (name string, err error) {
	folder, err := filepath.Abs(string(f))
	if err != nil {
		return "", err
	}
	if err := makeFolder(folder); err != nil {
		return "", err
	}
	text, err := encode(op)
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(string(f), "*.new")
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	if err == nil {
		err = fsync(file)
	}
	return file.Name(), errors.Join(err, file.Close())
}

// makeFolder creates a folder with its parents and syncs their names: otherwise a power cut may
// lose the folder.
func makeFolder(folder string) error {
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) { //nolint:gosec // the caller says where
		return err
	}
	above := filepath.Dir(folder)
	if err := makeFolder(above); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // the caller says where
		return err
	}
	return syncFolder(above)
}

// syncFolder syncs a folder itself: otherwise a power cut may lose a file's name. Windows does this
// by itself, and has no such call.
func syncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(name) //nolint:gosec // the caller says where
	if err != nil {
		return err
	}
	return errors.Join(fsync(folder), folder.Close())
}

// fsync is a variable so that a test can see what is synced.
var fsync = (*os.File).Sync

func read(name string) (*Operation, error) {
	text, err := os.ReadFile(name) //nolint:gosec // made of the folder and a hash
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	op, err := decode(text)
	return &op, err
}
