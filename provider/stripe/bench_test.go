package stripe_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"

	"paidonce/provider"
	"paidonce/provider/stripe"
	"paidonce/provider/stripesim"
)

// BenchmarkCharge is a charge as the adapter pays for it: the other side of the socket answers the
// same bytes at once and costs next to nothing.
func BenchmarkCharge(b *testing.B) {
	body := simCharge(b)
	answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go parrot(conn, answer)
		}
	}()
	p, err := stripe.New(stripe.Config{APIKey: "sk_test_1", BaseURL: "http://" + l.Addr().String()})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Charge(context.Background(), &ordinary); err != nil {
			b.Fatal(err)
		}
	}
}

// parrot reads requests with a Content-Length and answers each.
func parrot(conn net.Conn, answer []byte) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if v, is := bytes.CutPrefix(line, []byte("Content-Length: ")); is {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(v)))
		}
		if len(line) > 2 {
			continue
		}
		if _, err := in.Discard(length); err != nil {
			return
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// simCharge is the simulator's answer to ordinary, which has the fields and the size of Stripe's.
func simCharge(b *testing.B) []byte {
	sim, err := stripesim.New(stripesim.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer sim.Close()
	return post(b, sim, "amount=2000&currency=usd&source=tok_visa&metadata["+provider.MetadataOperation+"]=op_1&metadata["+
		provider.MetadataInstallation+"]=in_1")
}

// BenchmarkSimulator is a charge as the simulator pays for it, without the network.
func BenchmarkSimulator(b *testing.B) {
	sim, err := stripesim.New(stripesim.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer sim.Close()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = io.Discard.Write(post(b, sim, "amount=2000&currency=usd&source=tok_visa&metadata[a]=1"))
	}
}
