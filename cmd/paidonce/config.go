package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/mail"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5"

	"paidonce/api"
	"paidonce/charges"
	"paidonce/idemkeys"
	"paidonce/inbox"
	"paidonce/outbox/receipt"
	"paidonce/provider/stripe"
)

// config holds the settings, read from the environment. docs/settings.md describes each of them.
type config struct {
	DatabaseURL string `env:"DATABASE_URL"`

	StripeAPIKey  string `env:"STRIPE_API_KEY"`
	StripeAPIBase string `env:"STRIPE_API_BASE"       envDefault:"https://api.stripe.com"`
	ProviderProxy string `env:"PAIDONCE_PROVIDER_PROXY"`
	StripeFlow    string `env:"STRIPE_FLOW"           envDefault:"charges"`
	// Any of them may have signed a delivery, so that one can be replaced without a gap.
	StripeWebhookSecrets []string `env:"STRIPE_WEBHOOK_SECRET" envSeparator:","`

	Listen            string        `env:"PAIDONCE_LISTEN"              envDefault:"127.0.0.1:8080"`
	PprofListen       string        `env:"PAIDONCE_PPROF_LISTEN"`
	Workers           string        `env:"PAIDONCE_WORKERS"             envDefault:"relay,inbox"`
	DBMaxConns        int           `env:"PAIDONCE_DB_MAX_CONNS"`
	ProviderTimeout   time.Duration `env:"PAIDONCE_PROVIDER_TIMEOUT"    envDefault:"20s"`
	StaleAfter        time.Duration `env:"PAIDONCE_STALE_AFTER"         envDefault:"90s"`
	KeyTTL            time.Duration `env:"PAIDONCE_KEY_TTL"             envDefault:"24h"`
	ProviderKeyWindow time.Duration `env:"PAIDONCE_PROVIDER_KEY_WINDOW" envDefault:"23h"`
	PayerWindow       time.Duration `env:"PAIDONCE_PAYER_WINDOW"        envDefault:"23h"`
	LookupMisses      int           `env:"PAIDONCE_LOOKUP_MISSES"       envDefault:"3"`
	LookupSpan        time.Duration `env:"PAIDONCE_LOOKUP_SPAN"         envDefault:"2m"`
	Instance          string        `env:"PAIDONCE_INSTANCE"`
	Recover           string        `env:"PAIDONCE_RECOVER"             envDefault:"auto"`
	MaxBody           string        `env:"PAIDONCE_MAX_BODY"            envDefault:"1MiB"`
	RateLimit         string        `env:"PAIDONCE_RATE_LIMIT"          envDefault:"off"`
	CORSOrigins       []string      `env:"PAIDONCE_CORS_ORIGINS" envSeparator:","`
	EventTTL          time.Duration `env:"PAIDONCE_EVENT_TTL"           envDefault:"720h"`
	InboxTTL          time.Duration `env:"PAIDONCE_INBOX_TTL"           envDefault:"2160h"`
	LogTTL            time.Duration `env:"PAIDONCE_LOG_TTL"             envDefault:"8760h"`
	AllowPrivate      bool          `env:"PAIDONCE_WEBHOOK_ALLOW_PRIVATE" envDefault:"false"`
	NATSURL           string        `env:"PAIDONCE_NATS_URL"`
	KafkaBrokers      []string      `env:"PAIDONCE_KAFKA_BROKERS"       envSeparator:","`
	SMTPURL           string        `env:"PAIDONCE_SMTP_URL"`
	SMTPFrom          string        `env:"PAIDONCE_SMTP_FROM"`
	LogLevel          string        `env:"PAIDONCE_LOG_LEVEL"           envDefault:"info"`
	LogFormat         string        `env:"PAIDONCE_LOG_FORMAT"`

	workers    []string
	maxBody    int64
	ratePerSec float64 // 0 means off
	smtp       receipt.Server
	smtpFrom   *mail.Address // nil means the mail server's default
	logLevel   slog.Level
	jsonLog    bool
}

// need says what a command requires.
type need int

const (
	needDatabase need = 1 << iota
	needProvider      // implies a database on which charges can be made
	needWrites        // implies a database that accepts writes
)

var workerNames = []string{"relay", "inbox", "reconcile", "sweep"}

// loadConfig reads the environment and reports all problems at once, each with the setting's name
// and with what would be right.
func loadConfig(needs need) (*config, error) { return readConfig(needs, nonEmpty(os.Environ())) }

// readConfig does the same for an environment without empty values.
func readConfig(needs need, environ map[string]string) (*config, error) {
	var c config
	var problems []error
	if err := env.ParseWithOptions(&c, env.Options{Environment: environ}); err != nil {
		problems = append(problems, c.parseProblems(err)...)
	}
	bad := func(name, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
	}
	c.checkConnections(needs, bad)
	c.checkPprof(bad)
	c.checkTimes(bad)
	c.checkMail(bad)
	c.checkStreams(bad)
	c.checkRest(bad)
	c.checkLive(bad)
	if len(problems) > 0 {
		lines := []string{"the configuration is not right:"}
		for _, p := range problems {
			lines = append(lines, "  "+p.Error())
		}
		return nil, problemList{errors.New(strings.Join(lines, "\n"))}
	}
	return &c, nil
}

// nonEmpty returns the environment as a map. NAME= counts as not set, since container files write
// it so.
func nonEmpty(environ []string) map[string]string {
	m := map[string]string{}
	for _, line := range environ {
		if name, value, _ := strings.Cut(line, "="); value != "" {
			m[name] = value
		}
	}
	return m
}

// parseProblems says what is wrong with the values that the library could not read, without the
// values, which may be secret. It also sets these fields to their defaults, so that each is
// reported once, and the checks of other settings against them mean something.
func (c *config) parseProblems(err error) []error {
	var all env.AggregateError
	if !errors.As(err, &all) {
		return []error{err}
	}
	var defaults config
	if err := env.ParseWithOptions(&defaults, env.Options{Environment: map[string]string{}}); err != nil {
		return []error{err}
	}
	var problems []error
	for _, one := range all.Errors {
		var parse env.ParseError
		field, ok := reflect.StructField{}, errors.As(one, &parse)
		if ok {
			field, ok = reflect.TypeFor[config]().FieldByName(parse.Name)
		}
		if !ok {
			problems = append(problems, one)
			continue
		}
		reflect.ValueOf(c).Elem().FieldByIndex(field.Index).
			Set(reflect.ValueOf(defaults).FieldByIndex(field.Index))
		problems = append(problems,
			fmt.Errorf("%s: must be %s", field.Tag.Get("env"), wanted(field)))
	}
	return problems
}

// wanted describes the values that a setting can have, by its type and its default.
func wanted(field reflect.StructField) string {
	switch {
	case field.Type.Kind() == reflect.Bool:
		return "true or false"
	case field.Type == reflect.TypeFor[time.Duration]():
		return "a duration, such as " + field.Tag.Get("envDefault")
	}
	return "a whole number, such as " + cmp.Or(field.Tag.Get("envDefault"), "16")
}

type reporter func(name, format string, args ...any)

func (c *config) checkConnections(needs need, bad reporter) {
	if needs&needDatabase != 0 {
		if c.DatabaseURL == "" {
			bad("DATABASE_URL", "is required, such as postgres://user:password@host:5432/paidonce")
		} else if _, err := pgx.ParseConfig(c.DatabaseURL); err != nil {
			// The library's error is left out: it may quote the password.
			bad("DATABASE_URL", "is not a PostgreSQL url such as "+
				"postgres://user:password@host:5432/paidonce")
		}
	}
	if needs&needProvider != 0 && c.StripeAPIKey == "" {
		bad("STRIPE_API_KEY", "is required, such as sk_test_…; `paidonce dev` needs none")
	} else if c.StripeAPIKey != "" && !strings.HasPrefix(c.StripeAPIKey, "sk_") &&
		!strings.HasPrefix(c.StripeAPIKey, "rk_") {
		bad("STRIPE_API_KEY", "must be a secret or restricted key: sk_… or rk_…")
	}
	if u, err := url.Parse(c.StripeAPIBase); err != nil ||
		(u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		bad("STRIPE_API_BASE", "must be an http or https url without user or password, such as "+
			"https://api.stripe.com")
	}
	if _, err := stripe.ParseProxy(c.ProviderProxy); err != nil {
		bad("PAIDONCE_PROVIDER_PROXY", "%s", err)
	}
	if host, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" ||
		(host != "" && strings.ContainsAny(host, " /")) {
		bad("PAIDONCE_LISTEN", "must be host:port, such as 127.0.0.1:8080 or :8080")
	} else if p, err := strconv.Atoi(port); err != nil || p < 0 || p > math.MaxUint16 {
		bad("PAIDONCE_LISTEN", "the port must be a number up to 65535")
	}
	for i, secret := range c.StripeWebhookSecrets {
		// An empty secret would let anybody sign.
		if c.StripeWebhookSecrets[i] = strings.TrimSpace(secret); c.StripeWebhookSecrets[i] == "" {
			bad("STRIPE_WEBHOOK_SECRET",
				"has an empty secret; must be whsec_…, or several with commas")
		}
	}
	if c.StripeFlow != "charges" && c.StripeFlow != "payment_intents" {
		bad("STRIPE_FLOW", "must be charges or payment_intents")
	}
	switch {
	case c.DBMaxConns == 0:
		// Four connections a core keep the database's cores busy while others wait for the disk. At
		// least eight: on a small machine, reads must not queue behind the two committers.
		c.DBMaxConns = max(4*runtime.NumCPU(), 8)
	case c.DBMaxConns < 2 || c.DBMaxConns > 1000:
		bad("PAIDONCE_DB_MAX_CONNS", "must be 2 to 1000")
	}
}

func (c *config) checkTimes(bad reporter) {
	positive := func(name string, d time.Duration) {
		if d <= 0 {
			bad(name, "must be longer than 0")
		}
	}
	positive("PAIDONCE_PROVIDER_TIMEOUT", c.ProviderTimeout)
	positive("PAIDONCE_STALE_AFTER", c.StaleAfter)
	positive("PAIDONCE_KEY_TTL", c.KeyTTL)
	positive("PAIDONCE_PROVIDER_KEY_WINDOW", c.ProviderKeyWindow)
	c.checkPayer(bad)
	positive("PAIDONCE_EVENT_TTL", c.EventTTL)
	if c.InboxTTL < inbox.KeptAtLeast {
		bad("PAIDONCE_INBOX_TTL", "must be 720h or longer: the provider may send an event again "+
			"for so long, and it must be known then")
	}
	if c.LogTTL <= 0 || c.LogTTL < c.KeyTTL {
		bad("PAIDONCE_LOG_TTL", "must not be shorter than PAIDONCE_KEY_TTL: the log of an "+
			"operation is kept with its key")
	}
	if c.LookupSpan < 0 {
		bad("PAIDONCE_LOOKUP_SPAN", "must not be negative")
	}
	if c.LookupMisses < 1 || c.LookupMisses > 100 {
		bad("PAIDONCE_LOOKUP_MISSES", "must be 1 to 100")
	}
	if c.ProviderTimeout > 0 && c.StaleAfter > 0 {
		if least := c.engine().StaleMin(); c.StaleAfter < least {
			bad("PAIDONCE_STALE_AFTER", "%v is too short: nine tenths of it must cover one "+
				"provider call and its commit "+
				"(PAIDONCE_PROVIDER_TIMEOUT=%v and %v), so at least %v", c.StaleAfter,
				c.ProviderTimeout, idemkeys.CommitTime, least)
		}
	}
}

func (c *config) checkMail(bad reporter) {
	var err error
	if c.SMTPURL != "" {
		if c.smtp, err = receipt.ParseServer(c.SMTPURL); err != nil {
			bad("PAIDONCE_SMTP_URL", "%s", err)
		}
	}
	if c.SMTPFrom != "" {
		if c.smtpFrom, err = receipt.ParseSender(c.SMTPFrom); err != nil {
			bad("PAIDONCE_SMTP_FROM", "%s", err)
		}
	}
}

// checkStreams checks only the form: a server that is down now may come up later.
func (c *config) checkStreams(bad reporter) {
	if c.NATSURL != "" && slices.ContainsFunc(strings.Split(c.NATSURL, ","), func(s string) bool {
		return !isNATS(strings.TrimSpace(s))
	}) {
		// The value is left out: it may have a password.
		bad("PAIDONCE_NATS_URL", "must be a url such as nats://nats:4222, or several with commas")
	}
	for i, broker := range c.KafkaBrokers {
		c.KafkaBrokers[i] = strings.TrimSpace(broker)
		if host, port, err := net.SplitHostPort(c.KafkaBrokers[i]); err != nil || host == "" ||
			strings.ContainsAny(host, "/ ") || !isPort(port) {
			bad("PAIDONCE_KAFKA_BROKERS",
				"must be host:port, such as kafka:9092, or several with commas")
			return
		}
	}
}

// isNATS reports whether s is the address of a NATS server, with a scheme, a port or both.
func isNATS(s string) bool {
	scheme := strings.Contains(s, "://")
	if !scheme {
		s = "nats://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" ||
		!slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
		return false
	}
	return isPort(u.Port()) || u.Port() == "" && scheme
}

func isPort(s string) bool {
	p, err := strconv.ParseUint(s, 10, 16)
	return err == nil && p > 0
}

var instanceTag = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func (c *config) checkRest(bad reporter) {
	if c.Instance != "" && !instanceTag.MatchString(c.Instance) {
		bad("PAIDONCE_INSTANCE", "must have 1 to 64 letters, digits, dots, dashes or underscores")
	}
	if c.Recover != "auto" && c.Recover != "off" {
		bad("PAIDONCE_RECOVER", "must be auto or off")
	}
	if n, err := humanize.ParseBytes(c.MaxBody); err != nil || n < 1024 || n > 64<<20 {
		bad("PAIDONCE_MAX_BODY", "must be a size from 1KiB to 64MiB, such as 1MiB")
	} else {
		c.maxBody = int64(n)
	}
	if c.RateLimit != "off" {
		r, err := strconv.ParseFloat(c.RateLimit, 64)
		if err != nil || !(r > 0 && r <= 1e6) {
			bad("PAIDONCE_RATE_LIMIT",
				"must be off, or requests a second for each account, such as 100")
		}
		c.ratePerSec = r
	}
	for i, o := range c.CORSOrigins {
		c.CORSOrigins[i] = strings.TrimSpace(o)
	}
	for _, problem := range api.CheckOrigins(c.CORSOrigins) {
		bad("PAIDONCE_CORS_ORIGINS",
			"%s; must be origins such as https://shop.example.com, with commas, or *", problem)
	}
	for _, w := range strings.Split(c.Workers, ",") {
		switch w = strings.TrimSpace(w); {
		case w == "none" && c.Workers == "none":
		case slices.Contains(workerNames, w):
			c.workers = append(c.workers, w)
		default:
			bad("PAIDONCE_WORKERS", "knows no %q; any of %s, with commas, or none", w,
				strings.Join(workerNames, ", "))
		}
	}
	if err := c.logLevel.UnmarshalText([]byte(c.LogLevel)); err != nil {
		bad("PAIDONCE_LOG_LEVEL", "must be debug, info, warn or error")
	}
	switch c.LogFormat {
	case "json", "":
		c.jsonLog = c.LogFormat == "json" || !isTerminal(os.Stderr)
	case "text":
	default:
		bad("PAIDONCE_LOG_FORMAT", "must be text or json")
	}
}

func (c *config) engine() idemkeys.Config {
	return idemkeys.Config{StaleAfter: c.StaleAfter, CallLimit: c.ProviderTimeout,
		SendWindow: c.ProviderKeyWindow, KeyTTL: c.KeyTTL,
		// Whoever was working at the first miss has stopped before the last one. So nothing can
		// still be sent when the operation is declared absent.
		LookupSpan: max(c.LookupSpan, c.StaleAfter)}
}

func (c *config) charges(installation string) charges.Config {
	return charges.Config{
		Installation: installation, LookupMisses: c.LookupMisses,
		Intents: c.StripeFlow == "payment_intents", OwnReceipts: c.SMTPURL != "",
		PayerWindow: c.PayerWindow, KeyWindow: c.ProviderKeyWindow, RunLimit: c.engine().RunLimit(),
		Livemode: c.live(),
	}
}

func (c *config) logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: c.logLevel, ReplaceAttr: readableDuration}
	if c.jsonLog {
		return slog.New(slog.NewJSONHandler(jsonWriter{os.Stderr}, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}

// readableDuration writes durations as 1.5s in JSON, too, which would have nanoseconds.
func readableDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
