package idemkeys_test

import (
	"fmt"

	"paidonce/idemkeys"
)

// A key may be quoted, as a structured field is, or bare.
func ExampleParseKey() {
	for _, header := range [][]string{{`"order-6735"`}, {"order-6735"}, {"a", "b"}, nil} {
		key, err := idemkeys.ParseKey(header)
		fmt.Println(key, err)
	}
	// Output:
	// order-6735 <nil>
	// order-6735 <nil>
	//  the Idempotency-Key header must be one line of 1 to 255 printable ASCII characters
	//  an Idempotency-Key header is required
}

// What is stored with a key tells a repetition from another request under the same key.
func ExampleFingerprint() {
	first := idemkeys.NewFingerprint(
		"POST", "/v1/charges", "", []byte(`{"amount":2000,"currency":"usd"}`),
	)
	version, hash := first.Current()

	again := idemkeys.NewFingerprint(
		"POST", "/v1/charges", "", []byte(`{"amount":2000,"currency":"usd"}`),
	)
	same, _ := again.Matches(version, hash)
	fmt.Println("repeated:", same)

	other := idemkeys.NewFingerprint(
		"POST", "/v1/charges", "", []byte(`{"amount":2001,"currency":"usd"}`),
	)
	same, _ = other.Matches(version, hash)
	fmt.Println("another amount:", same)

	_, known := again.Matches(version+1, hash)
	fmt.Println("a rule of a later version is known:", known)
	// Output:
	// repeated: true
	// another amount: false
	// a rule of a later version is known: false
}

// What a phase may do follows from what is stored about the attempts so far.
func ExampleOperation_Plan() {
	fmt.Println("nothing was sent:", (&idemkeys.Operation{}).Plan())
	fmt.Println("the answer was lost:", (&idemkeys.Operation{Reached: true, WindowOpen: true}).Plan())
	fmt.Println("the provider forgot the key:", (&idemkeys.Operation{Reached: true}).Plan())
	fmt.Println(
		"it was not found once:",
		(&idemkeys.Operation{Reached: true, WindowOpen: true, Misses: 1}).Plan(),
	)
	// Output:
	// nothing was sent: send
	// the answer was lost: look_up_then_send
	// the provider forgot the key: look_up
	// it was not found once: look_up
}
