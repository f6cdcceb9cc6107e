package main

import (
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// notOurs are names that begin like settings and belong to others: clients, tests and benchmarks, and what Kubernetes sets for a service that is called paidonce.
var notOurs = regexp.MustCompile(`^PAIDONCE_(URL$|API_KEY$|HA$|TEST_|SIM_|DBTEST_|BENCH_|NEED_|FUZZ_)|_SERVICE_(HOST|PORT)|_PORT$|_PORT_\d+_(TCP|UDP|SCTP)`)

// warn tells what of the environment is probably not meant so, though it can be worked with.
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
			log.Warn("STRIPE_WEBHOOK_SECRET has a secret that does not begin with whsec_, as Stripe's do: no event of Stripe's may be believed")
		}
	}
	c.warnLive(log)
}

// settings are the names of all settings.
func settings() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config]()) {
		if name := f.Tag.Get("env"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// unknownSettings are the names of an environment that look like settings and are none, sorted. Names that begin with STRIPE_ are
// other programs' as well: of them only what is nearly one of ours is meant for us.
func unknownSettings(environ map[string]string) (names []string) {
	known := settings()
	for name := range environ {
		if slices.Contains(known, name) || notOurs.MatchString(name) {
			continue
		}
		if strings.HasPrefix(name, "PAIDONCE_") || strings.HasPrefix(name, "STRIPE_") && nearest(name, known) != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var prefix = regexp.MustCompile(`^(PAIDONCE|STRIPE)_`)

// nearest is the name that takes the fewest changes, "" when it takes more than a third of its letters without the prefix that many have: then it is another word.
func nearest(name string, known []string) (best string) {
	fewest := len(name)
	for _, k := range known {
		if n := changes(name, k); n < fewest && 3*n <= len(k)-len(prefix.FindString(k)) {
			best, fewest = k, n
		}
	}
	return best
}

// changes is Levenshtein's distance: how many letters have to be added, removed or replaced.
func changes(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
