package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"paidonce/accounts"
	"paidonce/db"
	"paidonce/internal/devpg"
)

// devDir is the folder of all that dev keeps: the database, the simulator's ledger, the API key.
const devDir = ".paidonce"

// devRunning is the file in it that a running dev has locked. It says which process that is.
const devRunning = "running"

func newDevCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine: PostgreSQL, a Stripe simulator, the API",
		Long: `Starts PostgreSQL, a Stripe simulator, the API and its workers, creates an account
with an API key, and prints curl lines that work. If DATABASE_URL is set, that
database is migrated and used, provided that it is empty or was used by dev before.
The data are kept in .paidonce/ in this folder, even after a crash. Ctrl-C stops
everything in order, a second Ctrl-C at once.`,
		Example: "  paidonce dev\n  PAIDONCE_LISTEN=127.0.0.1:9090 paidonce dev",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return dev(cmd.Context(), cmd.OutOrStdout())
		},
	}
}

// dev runs until ctx ends, which is at the first signal. It catches further signals too, because a
// database left running would belong to nobody. The second signal ends everything at once.
func dev(ctx context.Context, out io.Writer) error {
	stopNow := secondSignal()
	settings := devSettings()
	cfg, err := readConfig(0, settings) // wrong settings are reported before anything starts
	if err != nil {
		return err
	}
	dir, unlock, err := lockDevDir()
	if err != nil {
		return err
	}
	defer unlock()
	// This comes first, because the simulator needs the address to send its events to.
	listener, err := devListener(cfg)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // closed already when all went well
	said := fmt.Sprintf("process %d, http://%s\n", os.Getpid(), listener.Addr())
	if err := os.WriteFile(filepath.Join(dir, devRunning), []byte(said), 0o600); err != nil {
		return err
	}
	given, stopDatabase := givenDatabase(dir), func() {}
	if given {
		err = useGiven(ctx, cfg.DatabaseURL, out)
	} else {
		settings["DATABASE_URL"], stopDatabase, err = devDatabase(ctx, stopNow, dir, out)
	}
	if err != nil {
		return err
	}
	defer stopDatabase()
	// dev never talks to the real Stripe, whatever else the environment says.
	settings["STRIPE_API_KEY"] = "sk_test_simulator"
	settings["STRIPE_WEBHOOK_SECRET"] = "whsec_" + rand.Text()
	var stopSimulator func()
	settings["STRIPE_API_BASE"], stopSimulator, err = devSimulator(ctx, stopNow, dir,
		webhookURL(listener.Addr()), settings["STRIPE_WEBHOOK_SECRET"], out)
	if err != nil {
		return err
	}
	defer stopSimulator()
	if cfg, err = readConfig(needDatabase|needProvider, settings); err != nil {
		return err
	}
	waiting := func(text string) { fmt.Fprintln(out, text) }
	err = db.Migrate(ctx, cfg.DatabaseURL, db.MigrateOptions{Waiting: waiting})
	if err != nil && given {
		return fmt.Errorf("the database of DATABASE_URL cannot be migrated: %w; "+unsetURL, err)
	} else if err != nil {
		return fmt.Errorf("the database cannot be migrated: %w", err)
	}
	key, err := devAPIKey(ctx, cfg, filepath.Join(dir, "api-key"))
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, cfg, cfg.logger(), listener, func(addr string) {
			greet(out, addr, key, cfg)
		})
	}()
	select {
	case err := <-ended:
		return err
	case <-stopNow:
		return errors.New("ended at once, by a second signal: what was under way is resumed by " +
			"its next caller, or by the next dev")
	}
}

// lockDevDir creates the folder of dev's data and takes the lock on it, which one dev at a time may
// hold.
func lockDevDir() (dir string, unlock func(), err error) {
	if dir, err = filepath.Abs(devDir); err != nil {
		return "", nil, err
	}
	// When we are root, the database runs as another user, who has to get in.
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // see above
		return "", nil, err
	}
	running := filepath.Join(dir, devRunning)
	unlock, err = devpg.TryLock(running)
	if errors.Is(err, devpg.ErrLocked) {
		holder, _ := os.ReadFile(running)
		err = fmt.Errorf("paidonce dev is already running in this folder (%s)",
			cmp.Or(strings.TrimSpace(string(holder)), dir))
	}
	return dir, unlock, err
}

// devSettings returns the settings of the environment, with defaults for development.
func devSettings() map[string]string {
	settings := map[string]string{
		"PAIDONCE_WEBHOOK_ALLOW_PRIVATE": "true", // receivers of events are on this machine
		"PAIDONCE_WORKERS":               "relay,inbox,reconcile",
		"PAIDONCE_LOG_LEVEL":             "warn",
	}
	maps.Copy(settings, nonEmpty(os.Environ()))
	return settings
}

// secondSignal catches the signals that end a program. The channel is closed at the second one.
func secondSignal() <-chan struct{} {
	signals := make(chan os.Signal, 2) // two signals are awaited
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	second := make(chan struct{})
	go func() {
		<-signals
		<-signals
		close(second)
	}()
	return second
}

// devListener listens on the API's port, or on any free one if the usual one is taken. It keeps the
// port: another program could take one that is only looked up here and opened later.
func devListener(cfg *config) (net.Listener, error) {
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil && os.Getenv("PAIDONCE_LISTEN") == "" {
		fmt.Fprintln(os.Stderr, cfg.Listen, "is taken: another port is used")
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("PAIDONCE_LISTEN: %w", err)
	}
	return l, nil
}

// webhookURL returns the URL under which an API that listens on addr receives the provider's
// events.
func webhookURL(addr net.Addr) string {
	host, port, _ := net.SplitHostPort(addr.String())
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() { // it listens on all addresses
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/v1/provider/stripe/webhooks"
}

// devSimulator starts the Stripe simulator as a process of its own and returns its URL. The process
// ends when we do, even if we are killed. It sends its events to the URL in events, signed with
// secret.
func devSimulator(
	ctx context.Context, stopNow <-chan struct{}, dir, events, secret string, out io.Writer,
) (address string, stop func(), err error) {
	fmt.Fprintln(out, "Starting the Stripe simulator …")
	address, stop, err = startSimulator(ctx, stopNow, dir, events, secret,
		freeAddress("127.0.0.1:12111"))
	if errors.Is(err, errEndedAtOnce) { // another program took the port first
		address, stop, err = startSimulator(ctx, stopNow, dir, events, secret, "127.0.0.1:0")
	}
	if err != nil {
		return "", nil, fmt.Errorf("the Stripe simulator: %w", err)
	}
	return address, stop, nil
}

var errEndedAtOnce = errors.New("ended at once")

func startSimulator(
	ctx context.Context, stopNow <-chan struct{}, dir, events, secret, listen string,
) (address string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	// The context is not cancelled: the simulator ends last, when everything that calls it has
	// ended.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, "stripesim", "--listen", listen,
		"--ledger", filepath.Join(dir, "stripe-ledger.jsonl"),
		"--webhook-url", events, "--until-stdin-closes")
	// It is not an argument: every user of the machine can read those.
	cmd.Env = append(os.Environ(), "STRIPE_WEBHOOK_SECRET="+secret)
	cmd.Stderr = os.Stderr
	detach(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	listening := make(chan string, 1)
	gone := make(chan struct{})
	go func() {
		// The simulator says where it listens: if it could not get the port, another program would
		// answer there.
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		if _, url, found := strings.Cut(strings.TrimSpace(line), " on "); found {
			listening <- url
		}
		_ = cmd.Wait()
		close(gone)
	}()
	stop = func() {
		_ = stdin.Close() // this asks it to end
		select {
		case <-gone:
			return
		case <-stopNow:
		case <-time.After(devTimeout):
		}
		_ = cmd.Process.Kill()
		<-gone
	}
	select {
	case address = <-listening:
		return address, stop, nil
	case <-gone:
		err = errEndedAtOnce
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(devTimeout):
		err = errors.New("did not start")
	}
	stop()
	return "", nil, err
}

// devTimeout is how long a part of dev may take to start or to stop on a loaded machine.
const devTimeout = 20 * time.Second

// freeAddress returns addr if nothing listens on it, else a free address on this machine.
func freeAddress(addr string) string {
	for _, try := range []string{addr, "127.0.0.1:0"} {
		if l, err := net.Listen("tcp", try); err == nil {
			defer l.Close() //nolint:errcheck // only the address is needed
			return l.Addr().String()
		}
	}
	return addr
}

// devAPIKey returns the key of the last run if the database still knows it, else a new one. Nowhere
// else is a secret kept in a file; this one is for test money on this machine.
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
	return made.Secret, writePrivate(file, made.Secret+"\n")
}

func greet(out io.Writer, addr, key string, cfg *config) {
	idem := "dev-" + time.Now().Format("150405")
	charge := fmt.Sprintf(
		`curl -i http://%s/v1/charges -H 'Authorization: Bearer %s' -H 'Idempotency-Key: %s' \
    -H 'Content-Type: application/json' -d '{"amount":2000,"currency":"usd","source":"tok_visa"}'`, addr, key, idem)
	fmt.Fprintf(out, `
Paidonce is ready on http://%[1]s    (Ctrl-C stops everything; data stay in %[4]s/)
Reference of the API: http://%[1]s/docs
API key of the account dev: %[2]s

Make a charge:

  %[5]s

Repeat it: the same bytes, Idempotent-Replayed: true, and no second charge:

  %[5]s

Look around (a card that is declined is "source":"tok_chargeDeclined", under another key):

  curl http://%[1]s/v1/charges -H 'Authorization: Bearer %[2]s'
  curl http://%[1]s/v1/idempotency_keys/%[3]s -H 'Authorization: Bearer %[2]s'

Or with the client of this program, in another terminal ("paidonce charges create --help" has more):

  export PAIDONCE_URL=http://%[1]s PAIDONCE_API_KEY=%[2]s
  paidonce events tail -n 10      # prints events as they come
  paidonce charges list

The simulator's switches are listed on %[6]s/_sim/ (docs/simulator.md). For the other commands (ops, audit, inbox, reconcile, relay, …):

  export DATABASE_URL='%[7]s' STRIPE_API_BASE=%[6]s STRIPE_API_KEY=%[8]s \
    STRIPE_WEBHOOK_SECRET=%[9]s PAIDONCE_WEBHOOK_ALLOW_PRIVATE=%[10]t

`, addr, key, idem, devDir, charge, cfg.StripeAPIBase, cfg.DatabaseURL, cfg.StripeAPIKey, strings.Join(cfg.StripeWebhookSecrets, ","), cfg.AllowPrivate)
}
