//go:build linux || darwin

package devpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// programs is a folder with initdb and postgres.
type programs struct {
	dir          string
	major, minor int
}

func (p programs) path(name string) string { return filepath.Join(p.dir, name) }

// versionOutput is what `postgres --version` prints: "postgres (PostgreSQL) 15.18 (Debian
// 15.18-0)", "… 18beta2".
var versionOutput = regexp.MustCompile(`\(PostgreSQL\) (\d+)(?:\.(\d+))?`)

// usualFolders are where packages put the server's programs; Debian and PGDG keep them off PATH.
func usualFolders() []string {
	return []string{
		"/usr/lib/postgresql/*/bin",         // Debian, Ubuntu, SUSE
		"/usr/pgsql-*/bin",                  // PGDG on Fedora and its kin
		"/usr/libexec/postgresql*",          // Alpine
		"/usr/local/pgsql*/bin",             // built from source
		"/opt/homebrew/opt/postgresql*/bin", // Homebrew on Apple silicon
		"/usr/local/opt/postgresql*/bin",    // Homebrew on Intel
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	}
}

// findPrograms returns the programs of this machine, newest first. If PG_BINDIR is set, no other
// place is searched.
func findPrograms(ctx context.Context, acct *account) ([]programs, error) {
	if dir := os.Getenv("PG_BINDIR"); dir != "" {
		p, err := inspect(ctx, acct, dir)
		if err != nil {
			return nil, fmt.Errorf("PG_BINDIR: %w", err)
		}
		return []programs{p}, nil
	}
	folders := filepath.SplitList(os.Getenv("PATH"))
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(out)))
	}
	for _, pattern := range usualFolders() {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		folders = append(folders, found...)
	}
	var all []programs
	for _, dir := range folders {
		if p, err := inspect(ctx, acct, dir); err == nil {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b programs) int {
		return cmp.Or(cmp.Compare(b.major, a.major), cmp.Compare(b.minor, a.minor))
	})
	return all, ctx.Err()
}

// inspect asks the server in a folder for its version, as the user that will run it: programs which
// that user cannot execute are of no use.
func inspect(ctx context.Context, acct *account, dir string) (programs, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return programs{}, err
	}
	p := programs{dir: dir}
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(p.path(name)); err != nil {
			return p, fmt.Errorf("no PostgreSQL server programs: %w", err)
		}
	}
	out, err := acct.command(ctx, "/", p.path("postgres"), "--version").Output()
	if err != nil {
		return p, fmt.Errorf("%s --version: %w", p.path("postgres"), err)
	}
	m := versionOutput.FindStringSubmatch(string(out))
	if m == nil {
		return p, fmt.Errorf("%s --version said %q", p.path("postgres"), out)
	}
	p.major, _ = strconv.Atoi(m[1])
	p.minor, _ = strconv.Atoi(m[2])
	if p.major < MinMajor {
		return p, fmt.Errorf("%s is PostgreSQL %d; at least %d is needed", p.path("postgres"),
			p.major, MinMajor)
	}
	return p, nil
}

// choosePrograms picks the programs for a folder: those that can read the data there, so that an
// upgrade of the machine does not look like a loss of all data; else the newest; else a download.
func choosePrograms(ctx context.Context, dir string, acct *account, opt Options) (programs, error) {
	var found []programs
	if !opt.onlyDownload {
		var err error
		if found, err = findPrograms(ctx, acct); err != nil {
			return programs{}, err
		}
	}
	if len(found) == 0 {
		p, err := download(ctx, dir, acct, opt)
		if err != nil {
			return p, errors.Join(errors.New("no PostgreSQL server programs were found, and they "+
				"cannot be downloaded: "+
				"install PostgreSQL, or set PG_BINDIR to its programs or DATABASE_URL to a server"),
				err)
		}
		return p, nil
	}
	for _, p := range found {
		if _, err := os.Stat(filepath.Join(dir, "data"+strconv.Itoa(p.major))); err == nil {
			return p, nil
		}
	}
	if old, _ := filepath.Glob(filepath.Join(dir, "data[0-9][0-9]")); len(old) > 0 {
		opt.logger().Warn("the data of another PostgreSQL version are left as they are; its "+
			"programs are gone", "data", old)
	}
	return found[0], nil
}
