package paidonce

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"testing"
)

func TestLiveRefusals(t *testing.T) {
	store := FileStore(t.TempDir())
	c := live(t, store)
	p := twenty
	p.Amount = 0
	_, err := c.CreateCharge(t.Context(), "go-refused", p)
	said := []string{code(err)}
	p.Amount, p.Capture = 2000, Ptr(false)
	held, err := c.CreateCharge(t.Context(), "go-refused", p)
	if err != nil {
		t.Fatal(err)
	}
	capture := func(id string) {
		_, err := c.CaptureCharge(t.Context(), "go-refused/capture", id, CaptureParams{})
		said = append(said, code(err))
	}
	refund := func(id string, amount *int64) {
		_, err := c.CreateRefund(t.Context(), "go-refused/refund", RefundParams{
			Charge: &id, Amount: amount,
		})
		said = append(said, code(err))
	}
	capture("ch_nothing")
	refund("ch_nothing", nil)
	refund(held.Data.ID, Ptr[int64](1))
	capture(held.Data.ID)
	refund(held.Data.ID, Ptr[int64](2001))
	refund(held.Data.ID, nil)
	want := []string{
		"parameter_invalid_integer", "resource_missing", "resource_missing", "charge_not_captured",
		"", "amount_too_large", "",
	}
	if !slices.Equal(said, want) {
		t.Errorf("the server said %q", said)
	}
	// Who asks is at fault, so the same request goes on under its key.
	wrong, err := New(Config{BaseURL: os.Getenv("PAIDONCE_URL"), APIKey: "sk_wrong", Store: store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.CreateCharge(t.Context(), "go-wrong", twenty); code(err) != "api_key_invalid" {
		t.Error(err)
	}
	begun, _ := store.Find(t.Context(), "go-wrong")
	if _, err := c.CreateCharge(t.Context(), "go-wrong", twenty); err != nil {
		t.Error(err)
	}
	if ended, err := store.Find(t.Context(), "go-wrong"); err != nil || begun == nil ||
		ended == nil || ended.Key != begun.Key {
		t.Errorf("%+v, then %+v %v", begun, ended, err)
	}
}

// code is that of an answer that is an error, or empty.
func code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// loses loses the first answer, and keeps what all of them said.
type loses struct{ said *[]string }

func (l loses) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(body))
	if *l.said = append(*l.said, string(body)); len(*l.said) == 1 {
		return nil, errors.New("the answer is lost")
	}
	return res, err
}

// What moves no money is done once for each call as well.
func TestLiveRotation(t *testing.T) {
	c := live(t, FileStore(t.TempDir()))
	if _, err := c.PutWebhookEndpoint(t.Context(),
		"once", WebhookEndpointParams{URL: "https://203.0.114.7/in"}); err != nil {
		t.Fatal(err)
	}
	var said []string
	cfg := c.cfg
	cfg.HTTP = &http.Client{Transport: loses{&said}}
	losing, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := losing.RotateWebhookEndpointSecret(t.Context(), "once")
	if err != nil || !rotated.Replayed || len(said) != 2 || said[0] != said[1] {
		t.Fatalf("%+v %v, the server said %q", rotated, err, said)
	}
	if got, err := c.WebhookEndpoint(t.Context(), "once"); err != nil ||
		got.Data.Secret != rotated.Data.Secret {
		t.Errorf("%+v %v", got, err)
	}
	if next, err := c.RotateWebhookEndpointSecret(t.Context(), "once"); err != nil ||
		next.Data.Secret == rotated.Data.Secret {
		t.Errorf("%+v %v", next, err)
	}
	if _, err := c.DeleteWebhookEndpoint(t.Context(), "once"); err != nil {
		t.Error(err)
	}
}
