package api_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"paidonce/charges"
)

func TestDisputeListFilters(t *testing.T) {
	e := newEdge(t)
	if a := e.Get("/v1/disputes/" + disputeID); a.Code != 200 || a.ID() != disputeID {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	wants(t, e.As("sk_B").Get("/v1/disputes/"+disputeID), 404, "resource_missing", "id")
	wants(t, e.Get("/v1/disputes/"+disputeID+"?x=1"), 400, "parameter_unknown", "x")
	var f charges.DisputeFilter
	e.listDisputes = func(got charges.DisputeFilter) (charges.DisputePage, error) {
		f = got
		return charges.DisputePage{Disputes: []charges.Dispute{disputeOf(disputeID)}, HasMore: true}, nil
	}
	for query, want := range map[string]charges.DisputeFilter{
		"": {Limit: 10}, "?charge=ch_1&limit=3": {Limit: 3, Charge: "ch_1"}, "?starting_after=dp_1": {Limit: 10, StartingAfter: "dp_1"},
		"?ending_before=dp_1": {Limit: 10, EndingBefore: "dp_1"},
	} {
		a := e.Get("/v1/disputes" + query)
		if a.Code != 200 || f != want || !strings.HasPrefix(string(a.Body), `{"object":"list","url":"/v1/disputes","has_more":true,"data":[{"id":"`+disputeID) {
			t.Errorf("%s: got %d, %+v, %s", query, a.Code, f, a.Body)
		}
	}
	if a := e.Get("/v1/disputes?created[gte]=5&created[lt]=9"); a.Code != 200 || !f.CreatedFrom.Equal(time.Unix(5, 0)) || !f.CreatedBefore.Equal(time.Unix(9, 0)) {
		t.Errorf("got %d, %+v", a.Code, f)
	}
	for _, tc := range []struct{ query, code, param string }{
		{"limit=0", "parameter_invalid_integer", "limit"}, {"limit=101", "parameter_invalid_integer", "limit"}, {"status=won", "parameter_unknown", "status"},
		{"charge=" + strings.Repeat("c", 256), "parameter_invalid", "charge"}, {"starting_after=a&ending_before=b", "parameter_invalid", "ending_before"},
		{"created[gt]=x", "parameter_invalid_integer", "created[gt]"},
	} {
		wants(t, e.Get("/v1/disputes?"+tc.query), 400, tc.code, tc.param)
	}
	for err, want := range map[error]string{charges.ErrNotFound: "resource_missing", errors.New("SQLSTATE 57P01"): "unavailable"} {
		e.listDisputes = func(charges.DisputeFilter) (charges.DisputePage, error) { return charges.DisputePage{}, err }
		if a := e.Get("/v1/disputes?ending_before=dp_x"); a.Error().Code != want {
			t.Errorf("%v: got %d %s", err, a.Code, a.Body)
		}
	}
	// They are read only.
	for _, path := range []string{"/v1/disputes", "/v1/disputes/" + disputeID} {
		if a := e.Post(path, "K", "{}"); a.Code != 405 {
			t.Errorf("%s: got %d %s", path, a.Code, a.Body)
		}
	}
}

const disputeID = "dp_01KB7Y9C4K6P8R0T2V4X6Z8A1B"

func disputeOf(id string) charges.Dispute {
	return charges.Dispute{
		ID: id, Object: "dispute", Charge: charges.ChargeRef{ID: chargeID}, Currency: "usd", Reason: "general", Status: "lost", Provider: charges.Provider{Name: "stripe"},
	}
}
