//go:build linux || darwin

package devpg

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// downloadVersion is what is fetched when the machine has no PostgreSQL: the newest that the
// library knows of.
const downloadVersion = embeddedpostgres.V18

// download fetches server programs with the embedded-postgres library and unpacks them below dir,
// where the server's user can reach them (the library's own choice is the home folder, which is
// closed when we are root).
func download(ctx context.Context, dir string, acct *account, opt Options) (programs, error) {
	target := filepath.Join(dir, "programs-"+string(downloadVersion))
	if p, err := inspect(ctx, acct, filepath.Join(target, "bin")); err == nil {
		return p, nil
	}
	guard, err := lock(ctx, filepath.Join(dir, "download.lock"), true)
	if err != nil {
		return programs{}, err
	}
	defer guard.unlock()
	if p, err := inspect(ctx, acct, filepath.Join(target, "bin")); err == nil {
		return p, nil // somebody else fetched them while we waited
	}
	opt.logger().Info("no PostgreSQL on this machine: downloading its programs, once",
		"version", downloadVersion)

	// Downloads that were killed left these. Nobody else downloads now.
	left, _ := filepath.Glob(filepath.Join(dir, "fetch-*"))
	for _, path := range left {
		_ = os.RemoveAll(path)
	}
	scratch, err := os.MkdirTemp(dir, "fetch-")
	if err != nil {
		return programs{}, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	// The folder is renamed when it is complete, so that half a download is never taken for
	// programs.
	unpack := filepath.Join(scratch, "programs")
	if err := fetch(ctx, scratch, unpack, opt.repository); err != nil {
		return programs{}, err
	}
	if err := openUp(unpack); err != nil {
		return programs{}, err
	}
	if err := os.RemoveAll(target); err != nil {
		return programs{}, err
	}
	if err := os.Rename(unpack, target); err != nil {
		return programs{}, err
	}
	return inspect(ctx, acct, filepath.Join(target, "bin"))
}

// fetch makes the library download and unpack. The library has no call for only that: its Start
// also runs initdb and a server, empties RuntimePath, and wipes data of another version than
// Config.Version. So it gets throw-away folders and an encoding that does not exist: its initdb
// fails at once, after the unpacking.
func fetch(ctx context.Context, scratch, unpack, repository string) error {
	cache := filepath.Join(scratch, "cache")
	if home, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(home, "paidonce") // other checkouts find the archive there
	}
	port, err := freePort(0)
	if err != nil {
		return err
	}
	var said strings.Builder
	cfg := embeddedpostgres.DefaultConfig().
		Version(downloadVersion).Port(uint32(port)). //nolint:gosec // a port fits
		CachePath(cache).BinariesPath(unpack).
		RuntimePath(filepath.Join(scratch, "runtime")).DataPath(filepath.Join(scratch, "data")).
		Encoding("no-such-encoding").Logger(&said)
	if repository != "" {
		cfg = cfg.BinaryRepositoryURL(repository)
	}
	done := make(chan error, 1)
	go func() { done <- embeddedpostgres.NewDatabase(cfg).Start() }() // it takes no context
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err = <-done:
	}
	if _, statErr := os.Stat(filepath.Join(unpack, "bin", "postgres")); statErr != nil {
		return fmt.Errorf("download: %w %s", err, said.String())
	}
	return nil
}

// openUp lets every user read and run what was unpacked.
func openUp(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if d.IsDir() || mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode) //nolint:gosec // nobody else can write in this folder
	})
}
