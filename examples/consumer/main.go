// Command consumer is an example of a service that acts on Paidonce's events. It keeps accounts:
// each event is booked once, however often it comes, in whatever order, and whichever process is
// killed in between. README.md shows it at work; consumer.go is the part to learn from.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const usage = `Books what charges bring in and refunds give back, each event of Paidonce once.

Usage: consumer [-pull]

  -pull   read GET /v1/events from where it stopped, instead of being sent them

Environment:
  DATABASE_URL      PostgreSQL; the tables are made in a schema of their own, books
  PAIDONCE_URL      such as http://127.0.0.1:8080: there the endpoint is registered at each start, or with -pull events are read
  PAIDONCE_API_KEY  for that
  WEBHOOK_SECRET    the endpoint's secret, if it was registered in another way; both with a comma while it is changed
  LISTEN            default 127.0.0.1:8090
  ENDPOINT_URL      where Paidonce reaches this; default http://LISTEN/events
`

//go:embed schema.sql
var schema string

func main() {
	pull := flag.Bool("pull", false, "")
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), usage) }
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *pull)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, pull bool) error {
	p := &paidonce{
		url: os.Getenv("PAIDONCE_URL"), key: os.Getenv("PAIDONCE_API_KEY"), client: http.Client{
			Timeout: 30 * time.Second,
		},
	}
	given := os.Getenv("WEBHOOK_SECRET")
	switch {
	case os.Getenv("DATABASE_URL") == "":
		return errors.New("DATABASE_URL is not set; consumer -help says what can be")
	case (pull || given == "") && (p.url == "" || p.key == ""):
		return errors.New("PAIDONCE_URL and PAIDONCE_API_KEY are not set; consumer -help says " +
			"what can be")
	}
	db, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Exec(ctx, schema); err != nil {
		return err
	}
	c := &consumer{db: db}
	if pull {
		slog.Info("reading events", "from", p.url)
		c.pull(ctx, p)
		return nil
	}
	l, err := net.Listen("tcp", or(os.Getenv("LISTEN"), "127.0.0.1:8090"))
	if err != nil {
		return err
	}
	if given == "" { // now that somebody listens
		if given, err = p.register(ctx,
			or(os.Getenv("ENDPOINT_URL"), "http://"+l.Addr().String()+"/events")); err != nil {
			return err
		}
	}
	for _, secret := range strings.Split(given, ",") {
		key, _ := strings.CutPrefix(strings.TrimSpace(secret), "whsec_")
		s, err := standard.NewWebhook(key)
		if err != nil || key == "" { // with an empty one anybody could sign
			return errors.New(
				"WEBHOOK_SECRET is not what webhook endpoints have: whsec_ and base64")
		}
		c.secrets = append(c.secrets, s)
	}
	return c.serve(ctx, l)
}

// serve receives deliveries until ctx ends, and then answers those that it has begun.
func (c *consumer) serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("POST /events", c)
	server := &http.Server{Handler: mux, ReadTimeout: answerWithin, WriteTimeout: 2 * answerWithin}
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*answerWithin)
		defer cancel()
		ended <- server.Shutdown(limited)
	}()
	slog.Info("taking events", "url", "http://"+l.Addr().String()+"/events")
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
