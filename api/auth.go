package api

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"paidonce/accounts"
	"paidonce/problem"
)

// Authenticator knows whose an API key is; *accounts.Store is the one in production. It is an
// interface because tests of the edge alone have to see which of its methods is called: the cached
// answer for a request whose claim checks the key again, the database's for all others.
type Authenticator interface {
	// Authenticate asks the database. Errors: [accounts.ErrUnknownKey], or the database's.
	Authenticate(ctx context.Context, key string) (accounts.Identity, error)
	// Cached may be some seconds behind: only for requests whose own statement checks the key
	// again.
	Cached(ctx context.Context, key string) (accounts.Identity, error)
}

// apiKeyMax is the longest API key that is looked up, in bytes. Those that are issued have 55
// characters.
const apiKeyMax = 255

// presentedKey reads the API key of the Authorization lines: a bearer token, or the user name of
// HTTP Basic.
func presentedKey(lines []string) (string, *problem.Error) {
	if len(lines) == 0 || (len(lines) == 1 && lines[0] == "") {
		return "", problem.APIKeyMissing.New()
	}
	if len(lines) > 1 {
		return "", problem.APIKeyInvalid.Because(errors.New("several Authorization lines"))
	}
	scheme, key, _ := strings.Cut(lines[0], " ")
	key = strings.Trim(key, " ")
	switch lowerASCII(scheme) {
	case "bearer":
	case "basic":
		pair, err := base64.StdEncoding.DecodeString(key)
		if err != nil {
			return "", problem.APIKeyInvalid.Because(errors.New("basic credentials are not base64"))
		}
		key, _, _ = strings.Cut(string(pair), ":")
	default:
		return "", problem.APIKeyInvalid.Because(errors.New("unknown authentication scheme"))
	}
	if key == "" {
		return "", problem.APIKeyMissing.New()
	}
	if len(key) > apiKeyMax {
		return "", problem.APIKeyInvalid.Because(errors.New("too long"))
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", problem.APIKeyInvalid.Because(errors.New("not printable ASCII"))
		}
	}
	return key, nil
}

// fromAuthenticator is the answer to a failed look-up of an API key.
func fromAuthenticator(err error) *problem.Error {
	if errors.Is(err, accounts.ErrUnknownKey) {
		return problem.APIKeyInvalid.New()
	}
	return fromDatabase(err)
}
