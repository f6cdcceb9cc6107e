package dbtest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func count(t *testing.T, conn *pgx.Conn, query string, args ...any) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNewGivesEachTestItsOwnMigratedDatabase(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	for i := range 8 {
		t.Run(fmt.Sprint("clone ", i), func(t *testing.T) {
			t.Parallel()
			url := New(t)
			mu.Lock()
			if seen[url] {
				t.Errorf("%s was given out twice", url)
			}
			seen[url] = true
			mu.Unlock()
			conn := connect(t, url)
			if _, err := conn.Exec(t.Context(),
				"INSERT INTO accounts (id, name) VALUES ('acct_1', 'one')"); err != nil {
				t.Fatal(err)
			}
			if n := count(t, conn, "SELECT count(*) FROM accounts"); n != 1 {
				t.Errorf("%d accounts, want this test's 1", n)
			}
		})
	}
}

func TestNewEmptyHasNoTables(t *testing.T) {
	conn := connect(t, NewEmpty(t))
	if n := count(t, conn, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); n != 0 {
		t.Errorf("%d tables, want none", n)
	}
}

func TestServerSurvivesKillAndStop(t *testing.T) {
	t.Parallel()
	s := StartServer(t)
	url := s.URL()
	for i, down := range []func(){s.Kill, s.Stop, s.Kill} {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		insert := "INSERT INTO accounts (id, name) VALUES ($1, $1)"
		if _, err := conn.Exec(t.Context(), insert, fmt.Sprint("acct_", i)); err != nil {
			t.Fatal(err)
		}
		down()
		if _, err := conn.Exec(t.Context(), "SELECT 1"); err == nil {
			t.Error("the connection outlived its server")
		}
		s.Start()
		if s.URL() != url {
			t.Errorf("URL %s, want that of before, %s", s.URL(), url)
		}
		if n := count(t, connect(t, url), "SELECT count(*) FROM accounts"); n != i+1 {
			t.Errorf("%d accounts, want %d: each was committed", n, i+1)
		}
	}
}
