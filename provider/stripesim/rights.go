package stripesim

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// rightSet has the rights that restricted keys (rk_…) do not have.
type rightSet struct {
	mu      sync.Mutex
	missing []string
}

// TakeRights takes rights from all restricted keys, by Stripe's names (rak_dispute_read); those
// that were taken before come back. A right to write includes the one to read.
func (s *Server) TakeRights(missing ...string) { s.rights.take(missing) }

func (r *rightSet) take(missing []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing = missing
}

// rightFor is the right that a call needs.
func rightFor(c *call) string {
	name, known := map[string]string{
		"charges": "charge", "refunds": "charge", "payment_intents": "payment_intent", "disputes": "dispute", "customers": "customer",
		"account": "accounts_kyc_basic", "balance": "balance", "events": "event", "radar": "early_fraud_warning",
	}[c.parts[0]]
	switch {
	case !known:
		return ""
	case c.method == http.MethodGet:
		return "rak_" + name + "_read"
	}
	return "rak_" + name + "_write"
}

// check refuses a call of a restricted key that lacks the right to it.
func (r *rightSet) check(c *call, secret string) *apiError {
	if !strings.HasPrefix(secret, "rk_") {
		return nil
	}
	right := rightFor(c)
	r.mu.Lock()
	lacks := right != "" && slices.Contains(r.missing, right)
	r.mu.Unlock()
	if !lacks {
		return nil
	}
	e := invalid("", "", "The provided key '%s' does not have the required permissions for this endpoint on account 'acct_simulated'. "+
		"Having the '%s' permission would allow this request to continue.", masked(secret), right)
	e.Status = http.StatusForbidden
	return e
}
