package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"paidonce/idemkeys"
	"paidonce/problem"
)

// getIdempotencyKey shows an account what became of one of its keys.
func (s *Server) getIdempotencyKey(c echo.Context, r *request) error {
	key := r.param
	missing := problem.ResourceMissing.Of("key", "There is no such idempotency key.")
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return missing // such a key is never taken
		}
	}
	ctx, cancel := detached(c)
	defer cancel()
	k, err := s.cfg.Keys.Lookup(ctx, r.identity.AccountID, asStored(key))
	switch {
	case errors.Is(err, idemkeys.ErrNotFound):
		return missing
	case err != nil:
		return fromDatabase(err)
	}
	r.operationID = k.OperationID
	object := keyObject{
		Attempts: k.Attempts, Created: k.CreatedAt.Unix(), Key: k.Key, Object: "idempotency_key",
		Operation:       k.OperationID,
		OriginalRequest: k.OriginalRequest, Parked: k.Parked, RecoveryPoint: string(k.Point),
		Resource: k.ResourceID, Status: string(k.Status),
	}
	if k.ResponseCode != 0 {
		object.ResponseCode = &k.ResponseCode
	}
	if k.ExpiresAt != nil {
		expires := k.ExpiresAt.Unix()
		object.ExpiresAt = &expires
	}
	writeBody(c, http.StatusOK, problem.Render(object))
	return nil
}

// keyObject is IdempotencyKey of openapi.yaml.
type keyObject struct {
	Attempts        int    `json:"attempts"`
	Created         int64  `json:"created"`
	ExpiresAt       *int64 `json:"expires_at"`
	Key             string `json:"key"`
	Object          string `json:"object"`
	Operation       string `json:"operation"`
	OriginalRequest string `json:"original_request"`
	Parked          bool   `json:"parked"`
	RecoveryPoint   string `json:"recovery_point"`
	Resource        string `json:"resource"`
	ResponseCode    *int   `json:"response_code"`
	Status          string `json:"status"`
}

// asStored returns the key that a request with this Idempotency-Key has. The quoted form of a
// structured field is another spelling of the key. A text that only looks quoted cannot be sent as
// a key, but may be one that an answer showed.
func asStored(sent string) string {
	if strings.HasPrefix(sent, `"`) {
		if key, err := idemkeys.ParseKey([]string{sent}); err == nil {
			return key
		}
	}
	return sent
}
