package main

import (
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

// config is the environment. docs/settings.md describes each name.
type config struct {
	DatabaseURL string `env:"DATABASE_URL"`

	StripeAPIKey  string `env:"STRIPE_API_KEY"`
	StripeAPIBase string `env:"STRIPE_API_BASE"       envDefault:"https://api.stripe.com"`
	ProviderProxy string `env:"PAIDONCE_PROVIDER_PROXY"`
	StripeFlow    string `env:"STRIPE_FLOW"           envDefault:"charges"`
	// Any of them may have signed a delivery, so that one can be replaced without a gap.
	StripeWebhookSecrets []string `env:"STRIPE_WEBHOOK_SECRET" envSeparator:","`

	Listen            string        `env:"PAIDONCE_LISTEN"              envDefault:"127.0.0.1:8080"`
	Workers           string        `env:"PAIDONCE_WORKERS"             envDefault:"relay,inbox"`
	DBMaxConns        int           `env:"PAIDONCE_DB_MAX_CONNS"`
	ProviderTimeout   time.Duration `env:"PAIDONCE_PROVIDER_TIMEOUT"    envDefault:"20s"`
	StaleAfter        time.Duration `env:"PAIDONCE_STALE_AFTER"         envDefault:"90s"`
	KeyTTL            time.Duration `env:"PAIDONCE_KEY_TTL"             envDefault:"24h"`
	ProviderKeyWindow time.Duration `env:"PAIDONCE_PROVIDER_KEY_WINDOW" envDefault:"23h"`
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
	ratePerSec float64 // 0: off
	smtp       receipt.Server
	smtpFrom   *mail.Address // nil: as the server has it
	logLevel   slog.Level
	jsonLog    bool
}

// need says what a command cannot do without.
type need int

const (
	needDatabase need = 1 << iota
	needProvider      // and a database on which charges can be made
	needWrites        // and a database that takes them
)

var workerNames = []string{"relay", "inbox", "reconcile", "sweep"}

// loadConfig reads the environment and tells all its problems at once, each with the name and what would be right.
func loadConfig(needs need) (*config, error) {
	var c config
	var problems []error
	if err := env.ParseWithOptions(&c, env.Options{Environment: nonEmpty(os.Environ())}); err != nil {
		problems = append(problems, parseProblems(err)...)
		c.assumeDefaults(err)
	}
	bad := func(name, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
	}
	c.checkConnections(needs, bad)
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

// nonEmpty treats NAME= as not set, as container files write it.
func nonEmpty(environ []string) map[string]string {
	m := map[string]string{}
	for _, line := range environ {
		if name, value, _ := strings.Cut(line, "="); value != "" {
			m[name] = value
		}
	}
	return m
}

// parseProblems turns the library's errors into ours: the variable's name, without its value, which may be secret.
func parseProblems(err error) []error {
	wants := map[string]string{
		"DBMaxConns": "PAIDONCE_DB_MAX_CONNS: must be a whole number of connections, such as 16", "LookupMisses": "PAIDONCE_LOOKUP_MISSES: must be a whole number, such as 3",
		"ProviderTimeout": "PAIDONCE_PROVIDER_TIMEOUT: must be a duration, such as 20s", "StaleAfter": "PAIDONCE_STALE_AFTER: must be a duration, such as 90s",
		"KeyTTL": "PAIDONCE_KEY_TTL: must be a duration, such as 24h", "ProviderKeyWindow": "PAIDONCE_PROVIDER_KEY_WINDOW: must be a duration, such as 23h",
		"LookupSpan": "PAIDONCE_LOOKUP_SPAN: must be a duration, such as 2m", "EventTTL": "PAIDONCE_EVENT_TTL: must be a duration, such as 720h",
		"InboxTTL": "PAIDONCE_INBOX_TTL: must be a duration, such as 2160h", "LogTTL": "PAIDONCE_LOG_TTL: must be a duration, such as 8760h",
		"AllowPrivate": "PAIDONCE_WEBHOOK_ALLOW_PRIVATE: must be true or false",
	}
	var all env.AggregateError
	if !errors.As(err, &all) {
		return []error{err}
	}
	var problems []error
	for _, one := range all.Errors {
		var parse env.ParseError
		if errors.As(one, &parse) && wants[parse.Name] != "" {
			problems = append(problems, errors.New(wants[parse.Name]))
			continue
		}
		problems = append(problems, one)
	}
	return problems
}

// assumeDefaults sets what could not be read to its default, so that it is told once, and the checks of other settings against it mean something.
func (c *config) assumeDefaults(err error) {
	var defaults config
	var all env.AggregateError
	if env.ParseWithOptions(&defaults, env.Options{Environment: map[string]string{}}) != nil || !errors.As(err, &all) {
		return
	}
	for _, one := range all.Errors {
		var parse env.ParseError
		if errors.As(one, &parse) {
			if field := reflect.ValueOf(c).Elem().FieldByName(parse.Name); field.IsValid() {
				field.Set(reflect.ValueOf(defaults).FieldByName(parse.Name))
			}
		}
	}
}

type reporter func(name, format string, args ...any)

func (c *config) checkConnections(needs need, bad reporter) {
	if needs&needDatabase != 0 {
		if c.DatabaseURL == "" {
			bad("DATABASE_URL", "is required, such as postgres://user:password@host:5432/paidonce")
		} else if _, err := pgx.ParseConfig(c.DatabaseURL); err != nil {
			bad("DATABASE_URL", "is not a PostgreSQL url such as postgres://user:password@host:5432/paidonce") // without err: it may quote the password
		}
	}
	if needs&needProvider != 0 && c.StripeAPIKey == "" {
		bad("STRIPE_API_KEY", "is required, such as sk_test_…; `paidonce dev` needs none")
	} else if c.StripeAPIKey != "" && !strings.HasPrefix(c.StripeAPIKey, "sk_") && !strings.HasPrefix(c.StripeAPIKey, "rk_") {
		bad("STRIPE_API_KEY", "must be a secret or restricted key: sk_… or rk_…")
	}
	if u, err := url.Parse(c.StripeAPIBase); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		bad("STRIPE_API_BASE", "must be an http or https url without user or password, such as https://api.stripe.com")
	}
	if _, err := stripe.ParseProxy(c.ProviderProxy); err != nil {
		bad("PAIDONCE_PROVIDER_PROXY", "%s", err)
	}
	if host, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" || (host != "" && strings.ContainsAny(host, " /")) {
		bad("PAIDONCE_LISTEN", "must be host:port, such as 127.0.0.1:8080 or :8080")
	} else if p, err := strconv.Atoi(port); err != nil || p < 0 || p > math.MaxUint16 {
		bad("PAIDONCE_LISTEN", "the port must be a number up to 65535")
	}
	for i, secret := range c.StripeWebhookSecrets {
		if c.StripeWebhookSecrets[i] = strings.TrimSpace(secret); c.StripeWebhookSecrets[i] == "" { // with which anybody could sign
			bad("STRIPE_WEBHOOK_SECRET", "has an empty secret; must be whsec_…, or several with commas")
		}
	}
	if c.StripeFlow != "charges" && c.StripeFlow != "payment_intents" {
		bad("STRIPE_FLOW", "must be charges or payment_intents")
	}
	switch {
	case c.DBMaxConns == 0:
		// Four a core keep the database's cores busy while others wait for the disk; eight, so that a small machine's reads do not
		// queue behind its two committers.
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
	positive("PAIDONCE_EVENT_TTL", c.EventTTL)
	if c.InboxTTL < inbox.KeptAtLeast {
		bad("PAIDONCE_INBOX_TTL", "must be 720h or longer: the provider may send an event again for so long, and it must be known then")
	}
	if c.LogTTL <= 0 || c.LogTTL < c.KeyTTL {
		bad("PAIDONCE_LOG_TTL", "must not be shorter than PAIDONCE_KEY_TTL: the log of an operation is kept with its key")
	}
	if c.LookupSpan < 0 {
		bad("PAIDONCE_LOOKUP_SPAN", "must not be negative")
	}
	if c.LookupMisses < 1 || c.LookupMisses > 100 {
		bad("PAIDONCE_LOOKUP_MISSES", "must be 1 to 100")
	}
	if c.ProviderTimeout > 0 && c.StaleAfter > 0 {
		if err := c.engine().Check(); err != nil {
			bad("PAIDONCE_STALE_AFTER", "%s", strings.TrimPrefix(err.Error(), "PAIDONCE_STALE_AFTER="))
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

// checkStreams looks at the form only: servers that are away now may come.
func (c *config) checkStreams(bad reporter) {
	if c.NATSURL != "" && slices.ContainsFunc(strings.Split(c.NATSURL, ","), func(s string) bool { return !isNATS(strings.TrimSpace(s)) }) {
		bad("PAIDONCE_NATS_URL", "must be a url such as nats://nats:4222, or several with commas") // without it: it may have a password
	}
	for i, broker := range c.KafkaBrokers {
		c.KafkaBrokers[i] = strings.TrimSpace(broker)
		if host, port, err := net.SplitHostPort(c.KafkaBrokers[i]); err != nil || host == "" || strings.ContainsAny(host, "/ ") || !isPort(port) {
			bad("PAIDONCE_KAFKA_BROKERS", "must be host:port, such as kafka:9092, or several with commas")
			return
		}
	}
}

// isNATS reports whether it is the address of a NATS server, with a scheme or a port or both.
func isNATS(s string) bool {
	scheme := strings.Contains(s, "://")
	if !scheme {
		s = "nats://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
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
			bad("PAIDONCE_RATE_LIMIT", "must be off, or requests a second for each account, such as 100")
		}
		c.ratePerSec = r
	}
	for i, o := range c.CORSOrigins {
		c.CORSOrigins[i] = strings.TrimSpace(o)
	}
	for _, problem := range api.CheckOrigins(c.CORSOrigins) {
		bad("PAIDONCE_CORS_ORIGINS", "%s; must be origins such as https://shop.example.com, with commas, or *", problem)
	}
	for _, w := range strings.Split(c.Workers, ",") {
		switch w = strings.TrimSpace(w); {
		case w == "none" && c.Workers == "none":
		case slices.Contains(workerNames, w):
			c.workers = append(c.workers, w)
		default:
			bad("PAIDONCE_WORKERS", "knows no %q; any of %s, with commas, or none", w, strings.Join(workerNames, ", "))
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
	return idemkeys.Config{StaleAfter: c.StaleAfter, ProviderTimeout: c.ProviderTimeout, KeyWindow: c.ProviderKeyWindow, KeyTTL: c.KeyTTL,
		// Whoever was at work at the first miss has stopped before the last one, so nothing can still be sent when absence is concluded.
		LookupSpan: max(c.LookupSpan, c.StaleAfter)}
}

func (c *config) charges(installation string) charges.Config {
	return charges.Config{
		Installation: installation, LookupMisses: c.LookupMisses, Intents: c.StripeFlow == "payment_intents", OwnReceipts: c.SMTPURL != "",
		KeyWindow: c.ProviderKeyWindow, RunLimit: c.engine().RunLimit(),
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

// readableDuration writes durations as 1.5s in JSON too, where they would be nanoseconds.
func readableDuration(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
