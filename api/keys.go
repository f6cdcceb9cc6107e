package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"paidonce/idemkeys"
)

// GetIdempotencyKey tells an account what became of one of its keys.
func (s *Server) GetIdempotencyKey(c echo.Context, key string) error {
	missing := faultResourceMissing.of("key", "There is no such idempotency key.")
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return missing // such a key is never taken
		}
	}
	ctx, cancel := detached(c)
	defer cancel()
	k, err := s.cfg.Keys.Lookup(ctx, exchangeOf(c).identity.AccountID, asStored(key))
	switch {
	case errors.Is(err, idemkeys.ErrNotFound):
		return missing
	case err != nil:
		return fromDatabase(err)
	}
	exchangeOf(c).operation = k.OperationID
	shown := IdempotencyKey{
		Object: IdempotencyKeyObjectIdempotencyKey, Key: k.Key, Status: IdempotencyKeyStatus(k.Status), RecoveryPoint: string(k.Point),
		Attempts: k.Attempts, Operation: k.OperationID, Resource: k.ResourceID, Parked: k.Parked, OriginalRequest: k.OriginalRequest,
		Created: k.CreatedAt.Unix(),
	}
	if k.ResponseCode != 0 {
		shown.ResponseCode = &k.ResponseCode
	}
	if k.ExpiresAt != nil {
		expires := k.ExpiresAt.Unix()
		shown.ExpiresAt = &expires
	}
	writeBody(c, http.StatusOK, idemkeys.Render(shown))
	return nil
}

// asStored is the key that a request stands for which sent this in Idempotency-Key. The quoted form of a structured field is
// another spelling; what only looks like one is no key that could be sent, but may be one that we have told of.
func asStored(sent string) string {
	if strings.HasPrefix(sent, `"`) {
		if key, err := idemkeys.ParseKey([]string{sent}); err == nil {
			return key
		}
	}
	return sent
}
