package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
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

// devDir keeps everything that `dev` makes: the database, the simulator's ledger, the API key.
const devDir = ".paidonce"

func newDevCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine: PostgreSQL, a Stripe simulator, the API",
		Long: `Starts PostgreSQL (unless DATABASE_URL is set: that database is migrated and used, if it is empty or was used by dev before), a Stripe simulator, migrations, an account with an API key, the API
and its workers; prints curl lines that work. Data are kept in .paidonce/ in this folder, also after a crash. Ctrl-C stops everything, in order; a second one at once.`,
		Example: "  paidonce dev\n  PAIDONCE_LISTEN=127.0.0.1:9090 paidonce dev",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return dev(cmd.Context(), cmd.OutOrStdout())
		},
	}
}

// dev runs until ctx ends, which is at the first signal. The signals that follow are caught as well, for a database that is left running would be
// nobody's: the second makes everything end at once.
func dev(ctx context.Context, out io.Writer) error {
	hurry := secondSignal()
	dir, err := filepath.Abs(devDir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the database's user, who is not us when we are root, has to get in
		return err
	}
	setDefault("PAIDONCE_WEBHOOK_ALLOW_PRIVATE", "true") // receivers of events are on this machine
	setDefault("PAIDONCE_WORKERS", "relay,inbox,reconcile")
	setDefault("PAIDONCE_LOG_LEVEL", "warn")
	cfg, err := loadConfig(0) // what is wrong is told before anything starts
	if err != nil {
		return err
	}
	told := filepath.Join(dir, "running")
	unlock, err := devpg.TryLock(told)
	if errors.Is(err, devpg.ErrLocked) {
		who, _ := os.ReadFile(told)
		return fmt.Errorf("paidonce dev is already running in this folder (%s)", cmp.Or(strings.TrimSpace(string(who)), dir))
	} else if err != nil {
		return err
	}
	defer unlock()
	listener, err := devListener(cfg) // before the rest: the simulator has to know where to send its events
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // closed already when all went well
	if err := os.WriteFile(told, fmt.Appendf(nil, "process %d, http://%s\n", os.Getpid(), listener.Addr()), 0o600); err != nil {
		return err
	}
	given, stopDatabase := givenDatabase(dir), func() {}
	if given {
		err = useGiven(ctx, os.Getenv("DATABASE_URL"), out)
	} else {
		stopDatabase, err = devDatabase(ctx, hurry, dir, out)
	}
	if err != nil {
		return err
	}
	defer stopDatabase()
	stopSimulator, err := devSimulator(ctx, hurry, dir, webhookURL(listener.Addr()), out)
	if err != nil {
		return err
	}
	defer stopSimulator()
	if cfg, err = loadConfig(needDatabase | needProvider); err != nil {
		return err
	}
	waiting := func(text string) { fmt.Fprintln(out, text) }
	if err := db.Migrate(ctx, cfg.DatabaseURL, db.MigrateOptions{Waiting: waiting}); err != nil && given {
		return fmt.Errorf("the database of DATABASE_URL cannot be migrated: %w; `unset DATABASE_URL`, and dev starts a database of its own", err)
	} else if err != nil {
		return fmt.Errorf("the database cannot be migrated: %w", err)
	}
	key, err := devAPIKey(ctx, cfg, filepath.Join(dir, "api-key"))
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, cfg, cfg.logger(), listener, func(addr string) { greet(out, addr, key, cfg) })
	}()
	select {
	case err := <-ended:
		return err
	case <-hurry:
		return errors.New("ended at once, by a second signal: what was under way is resumed by its next caller, or by the next dev")
	}
}

// secondSignal catches the signals that end a program, from now on, and is closed at the second.
func secondSignal() <-chan struct{} {
	signals := make(chan os.Signal, 2) // as many as are waited for
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	second := make(chan struct{})
	go func() {
		<-signals
		<-signals
		close(second)
	}()
	return second
}

func setDefault(name, value string) {
	if os.Getenv(name) == "" {
		_ = os.Setenv(name, value) // fails for malformed names only
	}
}

// devListener takes the API's port, any free one when the usual one is taken, and keeps it: found free now and listened on later, it could
// be somebody else's by then.
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

// webhookURL is where the API that listens there takes events from this machine.
func webhookURL(addr net.Addr) string {
	host, port, _ := net.SplitHostPort(addr.String())
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() { // listens everywhere
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port) + "/v1/provider/stripe/webhooks"
}

// devSimulator starts the Stripe simulator as a process of its own, which ends when we do, however we end. It sends its events to a URL.
func devSimulator(ctx context.Context, hurry <-chan struct{}, dir, events string, out io.Writer) (stop func(), err error) {
	fmt.Fprintln(out, "Starting the Stripe simulator …")
	stop, err = startSimulator(ctx, hurry, dir, events, freeAddress("127.0.0.1:12111"))
	if errors.Is(err, errEndedAtOnce) { // somebody else was quicker to get the port
		stop, err = startSimulator(ctx, hurry, dir, events, "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("the Stripe simulator: %w", err)
	}
	return stop, nil
}

var errEndedAtOnce = errors.New("ended at once")

func startSimulator(ctx context.Context, hurry <-chan struct{}, dir, events, listen string) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	secret := "whsec_" + rand.Text()
	// Without cancel: it is asked to end when everything that talks to it has.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, "stripesim", "--listen", listen, "--ledger", filepath.Join(dir, "stripe-ledger.jsonl"),
		"--webhook-url", events, "--until-stdin-closes")
	cmd.Env = append(os.Environ(), "STRIPE_WEBHOOK_SECRET="+secret) // arguments are seen by every user of the machine
	cmd.Stderr = os.Stderr
	detach(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	address := make(chan string, 1)
	gone := make(chan struct{})
	go func() {
		// Its own word for where it listens: on a port that it could not get, somebody else would answer.
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		if _, url, found := strings.Cut(strings.TrimSpace(line), " on "); found {
			address <- url
		}
		_ = cmd.Wait()
		close(gone)
	}()
	stop = func() {
		_ = stdin.Close() // this is how it is asked to end
		select {
		case <-gone:
			return
		case <-hurry:
		case <-time.After(devPatience):
		}
		_ = cmd.Process.Kill()
		<-gone
	}
	select {
	case url := <-address:
		// dev never talks to the real Stripe, whatever else the environment says.
		_ = os.Setenv("STRIPE_API_BASE", url)
		_ = os.Setenv("STRIPE_API_KEY", "sk_test_simulator")
		_ = os.Setenv("STRIPE_WEBHOOK_SECRET", secret)
		return stop, nil
	case <-gone:
		err = errEndedAtOnce
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(devPatience):
		err = errors.New("did not start")
	}
	stop()
	return nil, err
}

// devPatience is how long a part of dev may take to start or stop on a loaded machine.
const devPatience = 20 * time.Second

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
	return made.Secret, writePrivate(file, made.Secret+"\n")
}

func greet(out io.Writer, addr, key string, cfg *config) {
	idem := "dev-" + time.Now().Format("150405")
	charge := fmt.Sprintf(`curl -i http://%s/v1/charges -H 'Authorization: Bearer %s' -H 'Idempotency-Key: %s' \
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
