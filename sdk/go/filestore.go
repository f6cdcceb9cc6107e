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

// FileStore keeps each operation in a file of its own, in the folder of that name, which several processes of one machine may share. The
// FileStores of Paidonce's libraries for other languages read and write the same files. It has to be on a file system that has hard links.
type FileStore string

// Begin implements Store.
func (f FileStore) Begin(ctx context.Context, op Operation) (Operation, error) {
	written, err := f.write(op)
	if err != nil {
		return op, err
	}
	defer func() { _ = os.Remove(written) }()
	for {
		// A link is made by one process only, and never shows half a file.
		kept, err := &op, os.Link(written, f.file(op.Name))
		if errors.Is(err, fs.ErrExist) {
			kept, err = f.Find(ctx, op.Name)
		}
		if err != nil {
			return op, err
		}
		if kept != nil {
			// Also when another process made the link: perhaps it has not come to this yet, and we are about to send.
			return *kept, syncFolder(string(f))
		}
		// Forgotten in between.
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

// file: a name may hold what a file's may not, so the file is named after its hash.
func (f FileStore) file(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(string(f), hex.EncodeToString(sum[:])+".json")
}

// write writes the operation to a file of another name, and to the disk.
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

// makeFolder makes a folder with those above it, and brings their names to the disk: else a power cut may take the folder away.
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

// syncFolder brings a folder itself to the disk: else a power cut may take a file's name away. Windows does so by itself, and has no such call.
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

// fsync is a variable for the test of what is brought to the disk.
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
