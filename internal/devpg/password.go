//go:build linux || darwin

package devpg

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// hbaRules admit nobody without the password. Our programs do not use sockets or ::1, which initdb
// would open as well.
const hbaRules = "# Only this machine gets in, and only with the password: other users of the " +
	"machine can connect, too.\n" +
	"host all         all 127.0.0.1/32 scram-sha-256\n" +
	"host replication all 127.0.0.1/32 scram-sha-256\n"

// readPassword returns the superuser's password. It is empty for a folder of an earlier version,
// which trusted everybody on the machine.
func (c *cluster) readPassword() (string, error) {
	text, err := os.ReadFile(c.file("password"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// writeHBA writes the rules of who may connect.
func (c *cluster) writeHBA(data string) error {
	hba := filepath.Join(data, "pg_hba.conf")
	return errors.Join(os.WriteFile(hba, []byte(hbaRules), 0o600), c.acct.give(hba))
}

// newPassword generates a password, unless there is one, and calls use with it and with a file that
// holds it. The server's user can read the file, which is removed afterwards. Then the password is
// kept for the next start.
func (c *cluster) newPassword(use func(password, file string) error) error {
	password, file := cmp.Or(c.password, rand.Text()), c.file("new-password")
	defer func() { _ = os.Remove(file) }()
	if err := errors.Join(os.WriteFile(file, []byte(password+"\n"), 0o600), c.acct.give(file)); err != nil {
		return err
	}
	if err := use(password, file); err != nil {
		return err
	}
	if err := os.WriteFile(c.file("password"), []byte(password+"\n"), 0o600); err != nil {
		return err
	}
	c.password = password
	return nil
}

// secure gives the data of an earlier version a password. No server is running, so PostgreSQL runs
// in single-user mode, without a port, for this one statement.
func (c *cluster) secure(ctx context.Context) error {
	return c.newPassword(func(password, _ string) error {
		cmd := c.acct.command(ctx, c.dir, c.progs.path("postgres"), "--single", "-D", c.data(),
			"-c", "dynamic_shared_memory_type=mmap", "postgres")
		// The password has only letters and digits.
		cmd.Stdin = strings.NewReader("ALTER ROLE " + superuser + " PASSWORD '" + password + "'\n")
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "ERROR:") {
			return fmt.Errorf("setting a password: %w\n%s", err, tail(out))
		}
		c.log.Info("gave the database of an earlier version a password", "data", c.data())
		return c.writeHBA(c.data())
	})
}
