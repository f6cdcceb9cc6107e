//go:build linux || darwin

package devpg

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	// fallbackParent holds the data when the server's user cannot reach the project's own folder.
	// It exists on every Unix, and unlike /tmp it survives a reboot.
	fallbackParent = "/var/tmp"
	// pointerFile, in the folder that was asked for, names the one that is used instead.
	pointerFile = "postgres-folder"
	// folderMode lets the server's user pass through the folder, and nobody else list it.
	folderMode = 0o711
)

// account is the user that the server's programs run as; nil means our own.
type account struct {
	name     string
	uid, gid uint32
}

// command prepares a program of PostgreSQL, run as the account, in a folder that the account can
// reach.
func (a *account) command(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return cmd
}

// environment returns our environment without PG* variables, which would redirect the programs, and
// with the C locale, which every machine has. On macOS the server refuses to start without a valid
// locale.
func environment() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PG") && !strings.HasPrefix(kv, "LC_") &&
			!strings.HasPrefix(kv, "LANG") {
			env = append(env, kv)
		}
	}
	return append(env, "LC_ALL=C")
}

// give makes the account the owner of a path.
func (a *account) give(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// reaches returns an error unless the account can enter the folder. It tries, so that access lists
// count, too.
func (a *account) reaches(ctx context.Context, dir string) error {
	return a.command(ctx, dir, "/bin/sh", "-c", ":").Run()
}

// unprivileged returns the account to run as: PostgreSQL refuses to run as root.
func unprivileged(ctx context.Context) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil is the account that we are
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 != nil || err2 != nil || uid == 0 {
			continue
		}
		a := &account{name: name, uid: uint32(uid), gid: uint32(gid)}
		if err := a.reaches(ctx, "/"); err != nil {
			return nil, fmt.Errorf("PostgreSQL does not run as root, and we cannot become "+
				"user %s: %w", name, err)
		}
		return a, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or " +
		"nobody to run it as")
}

// findPlace creates the folder and returns it with the account that the server runs as.
func findPlace(ctx context.Context, want string, log *slog.Logger) (string, *account, error) {
	dir, err := makeFolder(want)
	if err != nil {
		return "", nil, err
	}
	acct, err := unprivileged(ctx)
	if err != nil || acct == nil {
		return dir, acct, err
	}
	reachErr := acct.reaches(ctx, dir)
	if reachErr == nil {
		return dir, acct, nil
	}
	sum := sha256.Sum256([]byte(dir))
	// Twelve hex digits: enough to keep the projects of one machine apart, short enough to read.
	instead, err := makeFolder(filepath.Join(fallbackParent,
		"paidonce-"+hex.EncodeToString(sum[:])[:12]))
	if err != nil {
		return "", nil, err
	}
	if err := acct.reaches(ctx, instead); err != nil {
		return "", nil, fmt.Errorf("user %s reaches neither %s (%w) nor %s (%w)", acct.name, dir,
			reachErr, instead, err)
	}
	log.Info("PostgreSQL's data are kept outside of the project, because its user cannot reach "+
		"the project's folder",
		"user", acct.name, "unreachable", dir, "folder", instead)
	if err := os.WriteFile(filepath.Join(dir, pointerFile), []byte(instead+"\n"), 0o644); err != nil { //nolint:gosec // no secret
		log.Warn("cannot leave a note of where the data are", "err", err)
	}
	return instead, acct, nil
}

// makeFolder creates a folder and returns its path without symbolic links. Where everybody may
// create folders (/tmp, /var/tmp), one that another user prepared is refused: its owner could
// replace the data or the programs.
func makeFolder(want string) (string, error) {
	abs, err := filepath.Abs(want)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(abs), 0o755); err != nil { //nolint:gosec // parents are the user's to close
		return "", err
	}
	if err := os.Mkdir(abs, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	parent, err := os.Stat(filepath.Dir(abs))
	if err != nil {
		return "", err
	}
	const others, groupAndOthers = 0o002, 0o022 // who may write
	if parent.Mode().Perm()&others != 0 {
		info, err := os.Lstat(abs)
		if err != nil {
			return "", err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !info.IsDir() || !ok || int(st.Uid) != os.Geteuid() ||
			info.Mode().Perm()&groupAndOthers != 0 {
			return "", fmt.Errorf("%s was not made by us or is writable by others: remove it", abs)
		}
	}
	return filepath.EvalSymlinks(abs)
}
