package stripesim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

var errNotThere = errors.New("no such object, or it is not in a state for that")

func isControl(path string) bool { return strings.HasPrefix(path, "/_sim/") || path == "/_sim" }

// controls are the switches, by method and path. Each takes the request's body and gives what to
// answer as JSON.
var controls = map[string]func(s *Server, body []byte, r *http.Request) (any, error){
	"POST /_sim/faults":              (*Server).postFault,
	"GET /_sim/faults":               func(s *Server, _ []byte, _ *http.Request) (any, error) { return list{s.faults.list()}, nil },
	"DELETE /_sim/faults":            func(s *Server, _ []byte, _ *http.Request) (any, error) { s.faults.clear(); return done{}, nil },
	"POST /_sim/forget_keys":         (*Server).postForget,
	"POST /_sim/key_window":          (*Server).postKeyWindow,
	"POST /_sim/clock":               (*Server).postClock,
	"GET /_sim/clock":                (*Server).getClock,
	"POST /_sim/search_lag":          (*Server).postSearchLag,
	"POST /_sim/reset":               func(s *Server, _ []byte, _ *http.Request) (any, error) { return done{}, s.Reset() },
	"GET /_sim/ledger":               (*Server).getLedger,
	"GET /_sim/stats":                func(s *Server, _ []byte, _ *http.Request) (any, error) { return s.Stats(), nil },
	"GET /_sim/requests":             (*Server).getRequests,
	"GET /_sim/webhooks":             (*Server).getWebhooks,
	"POST /_sim/webhooks":            (*Server).postWebhooks,
	"POST /_sim/webhooks/send":       (*Server).postSend,
	"POST /_sim/end_debit":           (*Server).postEndDebit,
	"POST /_sim/end_refund":          (*Server).postEndRefund,
	"POST /_sim/dashboard_refund":    (*Server).postDashboardRefund,
	"POST /_sim/fail_refund":         (*Server).postFailRefund,
	"POST /_sim/dispute":             (*Server).postDispute,
	"POST /_sim/close_dispute":       (*Server).postCloseDispute,
	"POST /_sim/authenticate":        (*Server).postAuthenticate,
	"POST /_sim/update_dispute":      (*Server).postUpdateDispute,
	"POST /_sim/early_fraud_warning": (*Server).postWarning,
	"POST /_sim/rights":              (*Server).postRights,
	"POST /_sim/lapse":               (*Server).postLapse,
	"POST /_sim/release":             (*Server).postRelease,
	"POST /_sim/capture":             (*Server).postCapture,
}

type done struct{}

func (done) MarshalJSON() ([]byte, error) { return []byte(`{"ok":true}`), nil }

type list struct {
	Data any `json:"data"`
}

// serveControl answers the switches. They need no key: a simulator belongs on a loopback or test
// network, and pages of other sites are refused.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.TrimSuffix(r.URL.Path, "/") == "/_sim" {
		writeJSON(w, http.StatusOK, list{slices.Sorted(maps.Keys(controls))})
		return
	}
	do := controls[r.Method+" "+strings.TrimSuffix(r.URL.Path, "/")]
	if do == nil {
		writeJSON(w, http.StatusNotFound, map[string]string{"error": "no such switch: " + r.Method + " " + r.URL.Path})
		return
	}
	if !jsonOnly(r) {
		writeJSON(w, http.StatusUnsupportedMediaType, map[string]string{"error": "a body must be JSON, with Content-Type: application/json"})
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	out, err := do(s, body, r)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, out)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"not JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// strictJSON refuses fields that don't exist: a misspelled switch must not silently do nothing. No
// body is no fields.
func strictJSON(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func (s *Server) postFault(body []byte, _ *http.Request) (any, error) {
	var rule Rule
	if err := strictJSON(body, &rule); err != nil {
		return nil, err
	}
	id, err := s.AddFault(rule)
	return map[string]int{"id": id}, err
}

func (s *Server) postForget(body []byte, _ *http.Request) (any, error) {
	var in struct {
		Key string `json:"key"`
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	return done{}, s.ForgetKeys(in.Key)
}

type seconds struct {
	Seconds float64 `json:"seconds"`
}

func (v seconds) duration() time.Duration { return time.Duration(v.Seconds * float64(time.Second)) }

func (s *Server) postKeyWindow(body []byte, _ *http.Request) (any, error) {
	var in seconds
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	s.SetKeyWindow(in.duration())
	return done{}, nil
}

func (s *Server) postSearchLag(body []byte, _ *http.Request) (any, error) {
	var in seconds
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	s.SetSearchLag(in.duration())
	return done{}, nil
}

func (s *Server) postClock(body []byte, r *http.Request) (any, error) {
	var in struct {
		Offset float64 `json:"offset_seconds"`
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	s.SetClock(seconds{in.Offset}.duration())
	return s.getClock(nil, r)
}

func (s *Server) getClock([]byte, *http.Request) (any, error) {
	return map[string]any{"now": s.now().Unix(), "offset_seconds": time.Duration(s.offset.Load()).Seconds()}, nil
}

// getLedger gives every charge, refund, intent and dispute, oldest first: all, or those of an
// operation, key, customer or charge.
func (s *Server) getLedger(_ []byte, r *http.Request) (any, error) {
	s.mu.Lock()
	all := allObjects{
		charges:  snapshots(&s.state.allCharges, func(e *chargeEntry) *charge { return e.cur }),
		refunds:  snapshots(&s.state.allRefunds, func(e *refundEntry) *refund { return e.cur }),
		intents:  snapshots(&s.state.allIntents, func(e *intentEntry) *intent { return e.cur }),
		disputes: snapshots(&s.state.allDisputes, func(e *disputeEntry) *dispute { return e.cur }),
	}
	s.mu.Unlock()
	if err := s.settled(); err != nil {
		return nil, err
	}
	q := r.URL.Query()
	keep := func(key, chargeID, customer string, m []pair) bool {
		for name := range q {
			have := value(m, name)
			switch name {
			case "key":
				have = key
			case "charge":
				have = chargeID
			case "customer":
				have = customer
			}
			if have != q.Get(name) {
				return false
			}
		}
		return true
	}
	return all.view(keep), nil
}

// snapshots are the objects of a line as they are now.
func snapshots[T interface{ at() position }, O any](t *timeline[T], cur func(T) *O) []*O {
	out := make([]*O, 0, len(t.items))
	for _, item := range t.items {
		out = append(out, cur(item))
	}
	return out
}

// allObjects has every object as it was at one moment.
type allObjects struct {
	charges  []*charge
	refunds  []*refund
	intents  []*intent
	disputes []*dispute
}

func (o allObjects) view(keep func(key, chargeID, customer string, m []pair) bool) ledgerView {
	out := ledgerView{Charges: []chargeView{}, Refunds: []refundView{}, Intents: []intentView{}, Disputes: []dispute{}}
	for _, c := range o.charges {
		if keep(c.Key, c.ID, c.Customer, c.Metadata) {
			out.Charges = append(out.Charges, chargeView{charge: *c, Metadata: asMap(c.Metadata)})
		}
	}
	for _, re := range o.refunds {
		if keep(re.Key, re.Charge, "", re.Metadata) {
			out.Refunds = append(out.Refunds, refundView{refund: *re, Metadata: asMap(re.Metadata)})
		}
	}
	for _, in := range o.intents {
		if keep(in.Key, in.Charge, in.Customer, in.Metadata) {
			out.Intents = append(out.Intents, intentView{intent: *in, Metadata: asMap(in.Metadata)})
		}
	}
	for _, d := range o.disputes {
		if keep("", d.Charge, "", nil) {
			out.Disputes = append(out.Disputes, *d)
		}
	}
	return out
}

type ledgerView struct {
	Charges  []chargeView `json:"charges"`
	Refunds  []refundView `json:"refunds"`
	Intents  []intentView `json:"intents"`
	Disputes []dispute    `json:"disputes"`
}

type intentView struct {
	intent
	Metadata map[string]string `json:"metadata"`
}

type chargeView struct {
	charge
	Metadata map[string]string `json:"metadata"`
}

type refundView struct {
	refund
	Metadata map[string]string `json:"metadata"`
}

func value(m []pair, name string) string {
	for _, p := range m {
		if p.K == name {
			return p.V
		}
	}
	return ""
}

func asMap(pairs []pair) map[string]string {
	m := make(map[string]string, len(pairs))
	for _, p := range pairs {
		m[p.K] = p.V
	}
	return m
}

// getRequests gives the last requests, newest first.
func (s *Server) getRequests(_ []byte, r *http.Request) (any, error) {
	limit := 100
	if v := r.URL.Query().Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return nil, errors.New("limit is a number from 1")
		}
		limit = n
	}
	type row struct {
		*logEntry
		Params map[string]string `json:"params"`
	}
	rows := []row{}
	for _, e := range s.log.recent(limit) {
		rows = append(rows, row{e, asMap(e.params)})
	}
	return list{rows}, nil
}
