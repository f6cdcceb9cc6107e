package paidonce

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// FileStore keeps each operation in a file of its own, in the folder of that name, which several processes of one machine may share. The
// TypeScript SDK's FileStore reads and writes the same files.
type FileStore string

// Begin implements Store.
func (f FileStore) Begin(ctx context.Context, op Operation) (Operation, error) {
	written, err := f.write(op)
	if err != nil {
		return op, err
	}
	defer func() { _ = os.Remove(written) }()
	// A link is made by one process only, and never shows half a file.
	err = os.Link(written, f.file(op.Name))
	if err == nil {
		return op, f.sync()
	}
	if !errors.Is(err, fs.ErrExist) {
		return op, err
	}
	first, err := f.Find(ctx, op.Name)
	if err != nil {
		return op, err
	}
	if first == nil {
		return f.Begin(ctx, op) // forgotten in between
	}
	return *first, nil
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
	return f.sync()
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
	names, err := filepath.Glob(filepath.Join(string(f), "*.json"))
	if err != nil {
		return nil, err
	}
	var open []Operation
	for _, name := range names {
		op, err := read(name)
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
	if err := os.MkdirAll(string(f), 0o700); err != nil { //nolint:gosec // the caller says where
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
		err = file.Sync()
	}
	return file.Name(), errors.Join(err, file.Close())
}

// sync brings the folder itself to the disk: else a power cut may take a file's name away.
func (f FileStore) sync() error {
	folder, err := os.Open(string(f)) //nolint:gosec // the caller says where
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

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
