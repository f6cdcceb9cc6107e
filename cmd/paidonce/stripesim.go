package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"paidonce/provider/stripesim"
)

const stripeSimExample = `  # in memory, on the default port
  paidonce stripesim

  # keep the ledger in a file, and send events to a local Paidonce
  paidonce stripesim --ledger sim.jsonl \
    --webhook-url http://127.0.0.1:8080/v1/provider/stripe/webhooks --webhook-secret whsec_test

  # a charge
  curl http://127.0.0.1:12111/v1/charges -u sk_test_sim: -H 'Idempotency-Key: order-7' \
    -d amount=2000 -d currency=usd -d source=tok_visa

  # the next charge is carried out, but its answer gets lost
  curl http://127.0.0.1:12111/_sim/faults -H 'Content-Type: application/json' \
    -d '{"match":{"method":"POST","path":"/v1/charges"},"count":1,"fault":"drop_after"}'

  # how often money moved
  curl http://127.0.0.1:12111/_sim/stats`

type stripeSimFlags struct {
	listen, ledger, webhookSecret string
	account                       string
	webhookURLs                   []string
	keyWindow, searchLag          time.Duration
	fsync                         bool
	seed                          uint64
	untilStdinCloses              bool
}

var accountID = regexp.MustCompile(`^acct_[A-Za-z0-9_]{1,64}$`)

// check reports what is wrong with the flags before anything is opened. An unusable receiver would
// otherwise look like a provider that sends nothing.
func (f *stripeSimFlags) check() error {
	_, port, err := net.SplitHostPort(f.listen)
	if err != nil {
		return fmt.Errorf("--listen must be host:port, such as 127.0.0.1:12111, not %q", f.listen)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("--listen must have a port from 0 to 65535, not %q", port)
	}
	if f.keyWindow <= 0 {
		return fmt.Errorf("--key-window must be above 0, such as 24h, not %v", f.keyWindow)
	}
	if f.searchLag < 0 {
		return fmt.Errorf("--search-lag must be 0 or more, not %v", f.searchLag)
	}
	if !accountID.MatchString(f.account) {
		return fmt.Errorf("--account must be acct_ and letters or digits, such as acct_b, not %q",
			f.account)
	}
	for _, address := range f.webhookURLs {
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" &&
			u.Scheme != "https" {
			return fmt.Errorf("--webhook-url must be a URL such as "+
				"http://127.0.0.1:8080/v1/provider/stripe/webhooks, not %q", address)
		}
	}
	if slices.Contains(strings.Split(f.webhookSecret, ","), "") {
		return errors.New("--webhook-secret must be a secret, or several with commas, none of " +
			"them empty")
	}
	return nil
}

// newStripeSimCommand returns the command stripesim, which runs until its context ends.
func newStripeSimCommand() *cobra.Command {
	var f stripeSimFlags
	cmd := &cobra.Command{
		Use:   "stripesim",
		Short: "Run the Stripe simulator",
		Long: `Runs a simulator of Stripe's charges, payment intents, refunds, disputes, customers
and events. It has Stripe's rules for idempotency keys, a durable ledger, signed
webhooks, and switches for faults under /_sim/ (see docs/simulator.md). Point
STRIPE_API_BASE at it.

It moves no money and accepts any key that begins with sk_ or rk_. The switches need
no key, so keep it off public networks.`,
		Example: stripeSimExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError{err}
			}
			return runStripeSim(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:12111",
		"address to listen on; port 0 takes a free one")
	flags.StringVar(&f.ledger, "ledger", "", "file to keep everything in (default: memory only)")
	flags.StringVar(&f.account, "account", "acct_simulated", "id of the account that it plays")
	flags.DurationVar(&f.keyWindow, "key-window", 24*time.Hour,
		"how long an idempotency key is remembered")
	flags.DurationVar(&f.searchLag, "search-lag", time.Minute,
		"how long a charge stays invisible to search")
	flags.StringArrayVar(&f.webhookURLs, "webhook-url", nil,
		"receiver of events; may be given several times")
	flags.StringVar(&f.webhookSecret, "webhook-secret", cmp.Or(os.Getenv("STRIPE_WEBHOOK_SECRET"),
		"whsec_test"), "secret that signs events, or several with commas, which all sign")
	// --help must not print the secret itself
	flags.Lookup("webhook-secret").DefValue = "that of STRIPE_WEBHOOK_SECRET, or whsec_test"
	flags.BoolVar(&f.fsync, "fsync", true, "wait for the disk before answering")
	flags.Uint64Var(&f.seed, "seed", 0, "makes faults with a probability repeatable (0: random)")
	flags.BoolVar(&f.untilStdinCloses, "until-stdin-closes", false,
		"end with whoever holds the other end of standard input")
	// It is for dev, whose simulator must not outlive it even when dev is killed.
	_ = flags.MarkHidden("until-stdin-closes")
	return cmd
}

// whileStdinIsOpen returns a context that ends when standard input does.
func whileStdinIsOpen(ctx context.Context, stdin io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	return ctx
}

func runStripeSim(cmd *cobra.Command, f stripeSimFlags) (err error) {
	cfg := stripesim.Config{
		LedgerPath: f.ledger, NoSync: !f.fsync, Account: f.account, KeyWindow: f.keyWindow,
		SearchLag: f.searchLag, Seed: f.seed,
	}
	for _, u := range f.webhookURLs {
		cfg.Webhooks = append(cfg.Webhooks, stripesim.Endpoint{URL: u, Secret: f.webhookSecret})
	}
	sim, err := stripesim.New(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sim.Close()) }()
	ctx := cmd.Context()
	if f.untilStdinCloses {
		ctx = whileStdinIsOpen(ctx, cmd.InOrStdin())
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return err
	}
	// There is no write timeout, because a rule may delay an answer on purpose.
	server := &http.Server{
		Handler: sim, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	if _, err = fmt.Fprintf(cmd.OutOrStdout(), "Stripe simulator on http://%s\n", listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err = <-served:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err = server.Shutdown(stopping); errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // requests that a rule delays for good never end by themselves
	}
	return err
}
