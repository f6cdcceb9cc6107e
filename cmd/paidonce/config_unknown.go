package main

import (
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// notOurs matches names that look like settings and belong to others: to clients, tests and
// benchmarks, and those that Kubernetes sets for a service named paidonce.
var notOurs = regexp.MustCompile(
	`^PAIDONCE_(URL$|API_KEY$|HA$|TEST_|SIM_|DBTEST_|BENCH_|NEED_|FUZZ_)|_SERVICE_(HOST|PORT)|_PORT$|_PORT_\d+_(TCP|UDP|SCTP)`)

// warn logs settings that work, but are probably not what was meant.
func (c *config) warn(log *slog.Logger) {
	for _, name := range unknownSettings(nonEmpty(os.Environ())) {
		said := "it is no setting, and does nothing"
		if meant := nearest(name, settings()); meant != "" {
			said += fmt.Sprintf("; is %s meant?", meant)
		}
		log.Warn("unknown setting", "name", name, "cause", said)
	}
	for _, secret := range c.StripeWebhookSecrets {
		if !strings.HasPrefix(secret, "whsec_") {
			log.Warn("STRIPE_WEBHOOK_SECRET has a secret that does not begin with whsec_, as " +
				"Stripe's do: no event of Stripe's may be believed")
		}
	}
	c.warnLive(log)
}

// settings returns the names of all settings.
func settings() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config]()) {
		if name := f.Tag.Get("env"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// unknownSettings returns the names that look like settings and are none, sorted. Other programs
// have names that begin with STRIPE_, too: such a name counts only if it is close to one of
// Paidonce's.
func unknownSettings(environ map[string]string) (names []string) {
	known := settings()
	for name := range environ {
		if slices.Contains(known, name) || notOurs.MatchString(name) {
			continue
		}
		if strings.HasPrefix(name, "PAIDONCE_") || strings.HasPrefix(name, "STRIPE_") &&
			nearest(name, known) != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var prefix = regexp.MustCompile(`^(PAIDONCE|STRIPE)_`)

// nearest returns the known name that differs least from name. It returns "" if more than a third
// of the letters behind the common prefix differ: that is another word.
func nearest(name string, known []string) (best string) {
	fewest := len(name)
	for _, k := range known {
		if n := levenshtein.ComputeDistance(name, k); n < fewest &&
			3*n <= len(k)-len(prefix.FindString(k)) {
			best, fewest = k, n
		}
	}
	return best
}
