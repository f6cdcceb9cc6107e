package api

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"paidonce/accounts"
)

// Authenticator knows whose API keys are whose; *accounts.Store is the one in production, and tests of the edge alone have their own.
type Authenticator interface {
	// Authenticate asks the database. Errors: [accounts.ErrUnknownKey], or the database's.
	Authenticate(ctx context.Context, key string) (accounts.Identity, error)
	// Cached may be some seconds behind: only for requests whose own statement checks the key again.
	Cached(ctx context.Context, key string) (accounts.Identity, error)
}

// apiKeyMax is the longest API key that is looked at; ours have 55 characters.
const apiKeyMax = 255

// presentedKey reads the API key of the Authorization lines: a bearer token, or the user name of HTTP Basic.
func presentedKey(lines []string) (string, *apiError) {
	if len(lines) == 0 || (len(lines) == 1 && lines[0] == "") {
		return "", faultAPIKeyMissing.because(nil)
	}
	if len(lines) > 1 {
		return "", faultAPIKeyInvalid.because(errors.New("several Authorization lines"))
	}
	scheme, key, _ := strings.Cut(lines[0], " ")
	key = strings.Trim(key, " ")
	switch lowerASCII(scheme) {
	case "bearer":
	case "basic":
		pair, err := base64.StdEncoding.DecodeString(key)
		if err != nil {
			return "", faultAPIKeyInvalid.because(errors.New("basic credentials are not base64"))
		}
		key, _, _ = strings.Cut(string(pair), ":")
	default:
		return "", faultAPIKeyInvalid.because(errors.New("unknown authentication scheme"))
	}
	if key == "" {
		return "", faultAPIKeyMissing.because(nil)
	}
	if len(key) > apiKeyMax {
		return "", faultAPIKeyInvalid.because(errors.New("too long"))
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", faultAPIKeyInvalid.because(errors.New("not printable ASCII"))
		}
	}
	return key, nil
}

// fromAuthenticator is the answer to a failed look-up of an API key.
func fromAuthenticator(err error) *apiError {
	if errors.Is(err, accounts.ErrUnknownKey) {
		return faultAPIKeyInvalid.because(nil)
	}
	return fromDatabase(err)
}
