//go:build linux || darwin

package devpg

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// refuses fails unless the server lets nobody in with these words, neither to query nor to
// replicate.
func refuses(t *testing.T, address string) {
	t.Helper()
	for _, user := range []*url.Userinfo{url.User(superuser), url.UserPassword(superuser, ""),
		url.UserPassword(superuser, "guess"), url.User("nobody")} {
		for _, replication := range []string{"", "database"} {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			u.User = user
			if replication != "" {
				q := u.Query()
				q.Set("replication", replication)
				u.RawQuery = q.Encode()
			}
			conn, err := pgx.Connect(t.Context(), u.String())
			if err == nil {
				_ = conn.Close(t.Context())
			}
			var pg *pgconn.PgError
			if !errors.As(err, &pg) || pg.Code != "28P01" && pg.Code != "28000" {
				t.Errorf("%s, replication=%q: got %v", user, replication, err)
			}
		}
	}
}

func TestOnlyThePasswordLetsIn(t *testing.T) {
	s := start(t, Options{Dir: folder(t), Fast: true})
	exec1(t, s.URL("postgres"), "SELECT 1")
	refuses(t, s.URL("postgres"))
	entries, err := os.ReadDir(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		// not of folders, which are the server's alone
		text, _ := os.ReadFile(filepath.Join(s.Dir(), e.Name()))
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(string(text), s.c.password); has &&
			(info.Mode().Perm() != 0o600 || e.Name() != filepath.Base(s.c.file("password"))) {
			t.Errorf("the password is in %s, which is %v", e.Name(), info.Mode())
		}
	}
}

// An earlier version trusted everybody on the machine. Its data are kept, and its server is closed
// to others, whether it still runs or not.
func TestDataOfAnEarlierVersionGetAPassword(t *testing.T) {
	for name, runs := range map[string]bool{"running": true, "stopped": false} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			s := start(t, Options{Dir: dir})
			exec1(t, s.URL("postgres"), "CREATE TABLE kept (n int)")
			trust := []byte("host all all 127.0.0.1/32 trust\n" +
				"host replication all 127.0.0.1/32 trust\n")
			if err := errors.Join(os.WriteFile(filepath.Join(s.c.data(), "pg_hba.conf"), trust,
				0o600), s.c.acct.give(filepath.Join(s.c.data(), "pg_hba.conf")),
				os.Remove(s.c.file("password"))); err != nil {
				t.Fatal(err)
			}
			exec1(t, s.URL("postgres"),
				"ALTER ROLE postgres PASSWORD NULL; SELECT pg_reload_conf()")
			if !runs {
				s.Stop()
			}
			again := start(t, Options{Dir: dir})
			exec1(t, again.URL("postgres"), "SELECT n FROM kept")
			refuses(t, again.URL("postgres"))
			once := again.URL("postgres")
			again.Stop()
			if more := start(t, Options{Dir: dir}); more.URL("postgres") != once {
				t.Error("the password is another one at the next start: what dev printed does " +
					"not work any more")
			}
		})
	}
}
