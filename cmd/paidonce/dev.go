package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"paidonce/accounts"
	"paidonce/db"
	"paidonce/internal/devpg"
)

// devDir keeps everything that `dev` makes: the database, the simulator's ledger, the API key.
const devDir = ".paidonce"

func newDevCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine: PostgreSQL, a Stripe simulator, the API",
		Long: `Starts PostgreSQL (DATABASE_URL when it is set, else one of its own), a Stripe simulator, migrations, an account with an API key, the API
and its workers; prints curl lines that work. Data are kept in .paidonce/ in this folder, also after a crash. Ctrl-C stops everything.`,
		Example: "  paidonce dev\n  PAIDONCE_LISTEN=127.0.0.1:9090 paidonce dev",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return dev(cmd.Context(), cmd.OutOrStdout())
		},
	}
}

func dev(ctx context.Context, out io.Writer) error {
	dir, err := filepath.Abs(devDir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the database's user, who is not us when we are root, has to get in
		return err
	}
	stopDatabase, err := devDatabase(ctx, dir, out)
	if err != nil {
		return err
	}
	defer stopDatabase()
	stopSimulator, err := devSimulator(ctx, dir, out)
	if err != nil {
		return err
	}
	defer stopSimulator()
	setDefault("PAIDONCE_WORKERS", "relay,inbox,reconcile")
	setDefault("PAIDONCE_LOG_LEVEL", "warn")
	if os.Getenv("PAIDONCE_LISTEN") == "" {
		setDefault("PAIDONCE_LISTEN", freeAddress("127.0.0.1:8080"))
	}
	cfg, err := loadConfig(needDatabase | needProvider)
	if err != nil {
		return err
	}
	if _, err := db.Migrate(ctx, cfg.DatabaseURL); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	key, err := devAPIKey(ctx, cfg, filepath.Join(dir, "api-key"))
	if err != nil {
		return err
	}
	return serve(ctx, cfg, cfg.logger(), func(addr string) { greet(out, addr, key) })
}

func setDefault(name, value string) {
	if os.Getenv(name) == "" {
		_ = os.Setenv(name, value) // fails for malformed names only
	}
}

// devDatabase sets DATABASE_URL to a database of ours unless there is one.
func devDatabase(ctx context.Context, dir string, out io.Writer) (stop func(), err error) {
	if os.Getenv("DATABASE_URL") != "" {
		return func() {}, nil
	}
	fmt.Fprintln(out, "Starting PostgreSQL …")
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	server, err := devpg.Start(ctx, devpg.Options{Dir: dir, Log: log})
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL: %w", err)
	}
	url, err := server.EnsureDatabase(ctx, "paidonce")
	if err != nil {
		server.Stop()
		return nil, fmt.Errorf("PostgreSQL: %w", err)
	}
	setDefault("DATABASE_URL", url)
	return server.Stop, nil
}

// devSimulator starts the Stripe simulator as a process of its own, which ends when we do, however we end.
func devSimulator(ctx context.Context, dir string, out io.Writer) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addr := freeAddress("127.0.0.1:12111")
	fmt.Fprintln(out, "Starting the Stripe simulator …")
	cmd := exec.Command(self, "stripesim", "--listen", addr, "--ledger", filepath.Join(dir, "stripe-ledger.jsonl"), "--until-stdin-closes")
	cmd.Stderr = os.Stderr
	detach(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the Stripe simulator: %w", err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	stop = func() {
		_ = stdin.Close() // this is how it is asked to end
		select {
		case <-gone:
		case <-time.After(devPatience):
			_ = cmd.Process.Kill()
		}
	}
	if err := devReachable(ctx, addr, gone); err != nil {
		stop()
		return nil, fmt.Errorf("the Stripe simulator: %w", err)
	}
	// dev never talks to the real Stripe, whatever else the environment says.
	_ = os.Setenv("STRIPE_API_BASE", "http://"+addr)
	_ = os.Setenv("STRIPE_API_KEY", "sk_test_simulator")
	return stop, nil
}

// devPatience is how long a part of dev may take to start or stop on a loaded machine.
const devPatience = 20 * time.Second

func devReachable(ctx context.Context, addr string, gone chan error) error {
	deadline := time.After(devPatience)
	for {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case err := <-gone:
			gone <- err
			return fmt.Errorf("ended at once: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return errors.New("did not start")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freeAddress returns the address when nothing listens on it, else another one on the same host.
func freeAddress(addr string) string {
	for _, try := range []string{addr, "127.0.0.1:0"} {
		if l, err := net.Listen("tcp", try); err == nil {
			defer l.Close() //nolint:errcheck // only its address was wanted
			return l.Addr().String()
		}
	}
	return addr
}

// devAPIKey returns the key of the last run while the database still knows it, else a new one. It is the one place where a secret is kept in
// a file: a key to test money on this machine.
func devAPIKey(ctx context.Context, cfg *config, file string) (string, error) {
	pool, err := db.Open(cfg.DatabaseURL, 1)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	store := accounts.NewStore(pool)
	if kept, err := os.ReadFile(file); err == nil {
		key := strings.TrimSpace(string(kept))
		if _, err := store.Authenticate(ctx, key); err == nil {
			return key, nil
		}
	}
	made, err := store.CreateKey(ctx, "dev")
	if err != nil {
		return "", err
	}
	return made.Secret, os.WriteFile(file, []byte(made.Secret+"\n"), 0o600)
}

func greet(out io.Writer, addr, key string) {
	idem := "dev-" + time.Now().Format("150405")
	charge := fmt.Sprintf(`curl -i http://%s/v1/charges -H 'Authorization: Bearer %s' -H 'Idempotency-Key: %s' \
    -H 'Content-Type: application/json' -d '{"amount":2000,"currency":"usd","source":"tok_visa"}'`, addr, key, idem)
	fmt.Fprintf(out, `
Paidonce is ready on http://%[1]s    (Ctrl-C stops everything; data stay in %[4]s/)
API key of the account dev: %[2]s

Make a charge:

  %[5]s

Repeat it: the same bytes, Idempotent-Replayed: true, and no second charge:

  %[5]s

Look around (a card that is declined is "source":"tok_chargeDeclined", under another key):

  curl http://%[1]s/v1/charges -H 'Authorization: Bearer %[2]s'
  curl http://%[1]s/v1/idempotency_keys/%[3]s -H 'Authorization: Bearer %[2]s'

`, addr, key, idem, devDir, charge)
}
