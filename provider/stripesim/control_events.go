package stripesim

import (
	"errors"
	"net/http"
	"strings"
)

type hookView struct {
	Endpoints []Endpoint  `json:"endpoints"`
	Mode      WebhookMode `json:"mode"`
	Delivered int64       `json:"delivered"`
	Failed    int64       `json:"failed"`
}

func (s *Server) getWebhooks([]byte, *http.Request) (any, error) {
	endpoints, mode := s.hooks.config()
	if endpoints == nil {
		endpoints = []Endpoint{}
	}
	return hookView{endpoints, mode, s.hooks.delivered.Load(), s.hooks.failed.Load()}, nil
}

// postWebhooks changes the endpoints, the mode, or both; what is left out stays.
func (s *Server) postWebhooks(body []byte, r *http.Request) (any, error) {
	var in struct {
		Endpoints []Endpoint   `json:"endpoints"`
		Mode      *WebhookMode `json:"mode"`
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	s.hooks.set(in.Endpoints, in.Mode)
	return s.getWebhooks(nil, r)
}

// postSend tells one event by hand, also when webhooks are off: one that happened, or a new one
// about an object.
func (s *Server) postSend(body []byte, _ *http.Request) (any, error) {
	var in struct {
		Event  string `json:"event"`  // evt_…
		Type   string `json:"type"`   // with object: makes a new event that isn't in the ledger
		Object string `json:"object"` // ch_…, re_…, pi_…, dp_… or issfr_…
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	v, err := s.eventToSend(in.Event, in.Type, in.Object)
	if err != nil {
		return nil, err
	}
	endpoints, _ := s.hooks.config()
	if len(endpoints) == 0 {
		return nil, errors.New("no webhook endpoint is configured")
	}
	body, sent := rendered(v), 0
	for _, to := range endpoints {
		if s.hooks.deliver(hookJob{to: to, body: body}) {
			sent++
		}
	}
	return map[string]any{"event": v.id, "delivered": sent, "endpoints": len(endpoints)}, nil
}

func (s *Server) eventToSend(id, kind, object string) (*event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" {
		if v := s.state.events[id]; v != nil {
			return v, nil
		}
		return nil, errNotThere
	}
	v := &event{position: position{created: s.now().Unix()}, id: newID("evt_"), kind: kind}
	switch {
	case kind == "":
		return nil, errors.New("name an event, or a type and an object")
	case strings.HasPrefix(object, "ch_") && s.state.charges[object] != nil:
		c := s.state.charges[object].cur
		v.object, v.live = c, c.Live
	case strings.HasPrefix(object, "re_") && s.state.refunds[object] != nil:
		r := s.state.refunds[object].cur
		v.object, v.live = r, r.Live
	case strings.HasPrefix(object, "pi_") && s.state.intents[object] != nil:
		in := s.state.intents[object].cur
		v.object, v.live = in, in.Live
	case strings.HasPrefix(object, "dp_") && s.state.disputes[object] != nil:
		d := s.state.disputes[object].cur
		v.object, v.live = d, d.Live
	case strings.HasPrefix(object, "issfr_") && s.state.warnings[object] != nil:
		w := s.state.warnings[object].cur
		v.object, v.live = w, w.Live
	default:
		return nil, errNotThere
	}
	return v, nil
}

func (s *Server) postFailRefund(body []byte, _ *http.Request) (any, error) {
	var in struct {
		Refund string `json:"refund"`
		Reason string `json:"reason"`
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	return done{}, s.FailRefund(in.Refund, in.Reason)
}

func (s *Server) postAuthenticate(body []byte, _ *http.Request) (any, error) {
	var in struct {
		Intent  string `json:"intent"`
		Outcome string `json:"outcome"` // succeed or fail
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	if in.Outcome != "succeed" && in.Outcome != "fail" {
		return nil, errors.New("outcome is succeed or fail")
	}
	return done{}, s.Authenticate(in.Intent, in.Outcome == "succeed")
}

// heldCharge is the body of the switches for authorisations.
type heldCharge struct {
	Charge string `json:"charge"`
	Amount int64  `json:"amount"` // only of a capture; 0: all
}

func (s *Server) postLapse(body []byte, _ *http.Request) (any, error) {
	var in heldCharge
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	return done{}, s.LapseHold(in.Charge)
}

func (s *Server) postRelease(body []byte, _ *http.Request) (any, error) {
	var in heldCharge
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	return done{}, s.ReleaseHold(in.Charge)
}

func (s *Server) postCapture(body []byte, _ *http.Request) (any, error) {
	var in heldCharge
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	return done{}, s.CaptureHold(in.Charge, in.Amount)
}

func splitList(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
