package stripesim

import "net/http"

func (s *Server) postDispute(body []byte, _ *http.Request) (any, error) {
	var in struct {
		Charge string `json:"charge"`
		DisputeTerms
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	id, err := s.OpenDispute(in.Charge, in.DisputeTerms)
	return made{id}, err
}

func (s *Server) postUpdateDispute(body []byte, _ *http.Request) (any, error) {
	var in struct {
		Dispute string `json:"dispute"`
		DisputeTerms
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	return done{}, s.ChangeDispute(in.Dispute, in.DisputeTerms)
}

func (s *Server) postCloseDispute(body []byte, _ *http.Request) (any, error) {
	var in struct {
		Dispute string `json:"dispute"`
		Status  string `json:"status"` // one of disputeEnds
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	return done{}, s.CloseDispute(in.Dispute, in.Status)
}

func (s *Server) postWarning(body []byte, _ *http.Request) (any, error) {
	var in struct {
		Charge    string `json:"charge"`
		FraudType string `json:"fraud_type"`
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	id, err := s.WarnOfFraud(in.Charge, in.FraudType)
	return made{id}, err
}

func (s *Server) postRights(body []byte, _ *http.Request) (any, error) {
	var in struct {
		Missing []string `json:"missing"`
	}
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}
	s.TakeRights(in.Missing...)
	return done{}, nil
}

// made says what a switch has made.
type made struct {
	ID string `json:"id"`
}
