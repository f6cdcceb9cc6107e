// Checkout is a shop of one page, to copy from: a payer may have to authenticate with the bank,
// comes back, and sees what became of the payment. It uses only what is documented.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "checkout:", err)
		os.Exit(1)
	}
}

func run() error {
	listen := cmp.Or(os.Getenv("SHOP_LISTEN"), "127.0.0.1:8083")
	// Longer than Paidonce takes to say that it does not know.
	p := &paidonce{url: os.Getenv("PAIDONCE_URL"), key: os.Getenv("PAIDONCE_API_KEY"),
		client: http.Client{Timeout: 30 * time.Second}}
	if p.url == "" || p.key == "" {
		return errors.New("PAIDONCE_URL and PAIDONCE_API_KEY are not set; make dev prints them")
	}
	s := newShop(p, cmp.Or(os.Getenv("SHOP_URL"), "http://"+listen))
	fmt.Println("The shop is at", s.url)
	server := &http.Server{
		Addr: listen, Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second,
	}
	return server.ListenAndServe()
}
