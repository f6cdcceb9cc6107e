package api_test

import (
	"testing"
)

// Fingerprints of requests stay what they were in version 35 of the schema, before there were
// nested parameters: the retry of a key that a server of that time has claimed is the same request
// for this one. A change here needs a new rule of fingerprints beside the old one.
func TestFingerprintsStayAcrossDeployments(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for key, c := range map[string]struct{ json, form, hash string }{
		"least": {
			`{"amount":2000,"currency":"usd","source":"tok_visa"}`,
			"amount=2000&currency=usd&source=tok_visa",
			"5fb50d6081d779e3065bfdebd016eaa913f0e8f2e8247fc4bf0ac991dd248e22",
		},
		"all": {
			`{"amount":2000,"currency":"usd","source":"tok_visa","capture":false,"description":"é \"/","receipt_email":"a@example.com",
				"statement_descriptor_suffix":"ORDER a","metadata":{"b":"2","a":"","z":"1"},"reference":"order-1"}`,
			"amount=2000&currency=usd&source=tok_visa&capture=false&description=%C3%A9+%22/&receipt_email=a@example.com" +
				"&statement_descriptor_suffix=ORDER+a&metadata[b]=2&metadata[a]=&metadata[z]=1&reference=order-1",
			"2998d49dbe4d01e8826065eecb20cbb15b3f58a0ccd2ee7ea5bddd612d4b6c00",
		},
		"unset": {
			`{"amount":2000,"currency":"usd","source":"tok_visa","description":null,"metadata":null}`,
			"amount=2000&currency=usd&source=tok_visa&description=&metadata=",
			"cafb43a946396c4835e845b0226f5dcac588757cfa27ebc9c308da89746d4f1f",
		},
	} {
		first := s.Charge(key, c.json)
		created(t, first)
		var hash string
		s.World.Read(`SELECT encode(request_hash, 'hex') FROM idempotency_keys WHERE key = $1`, []any{key}, &hash)
		if hash != c.hash {
			t.Errorf("%s: the fingerprint is %s, want %s", key, hash, c.hash)
		}
		same(t, first, s.ChargeForm(key, c.form))
	}
}
