package idemkeys

import (
	"bytes"
	"encoding/json"
)

// Advice tells a program what to do about an error.
type Advice string

// What a program can do.
const (
	RetrySameKey    Advice = "retry_same_key"
	FixAndUseNewKey Advice = "fix_and_use_new_key"
	Stop            Advice = "stop"
)

// Problem is the error object of every answer that is not a success, with Stripe's shape and type names. Stored answers and
// fresh ones are rendered by the same code.
type Problem struct {
	Type        string `json:"type"`
	Code        string `json:"code,omitempty"`
	Message     string `json:"message"`
	Param       string `json:"param,omitempty"`
	DeclineCode string `json:"decline_code,omitempty"`
	Charge      string `json:"charge,omitempty"`
	RequestID   string `json:"request_id"`
	Advice      Advice `json:"advice"`
}

// Render returns the body of the answer.
func (p Problem) Render() []byte {
	return Render(struct {
		Error Problem `json:"error"`
	}{p})
}

// Render encodes v as the body of an answer: JSON without HTML escapes, ended by a newline. v must be encodable.
func Render(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("rendering an answer: " + err.Error()) // only our own types come here, and all of them are encodable
	}
	return b.Bytes()
}
