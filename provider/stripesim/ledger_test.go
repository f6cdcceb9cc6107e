package stripesim_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"paidonce/provider/stripesim"
)

// TestMain makes the test binary a simulator when a test wants a real process to kill.
func TestMain(m *testing.M) {
	if path := os.Getenv("STRIPESIM_TEST_LEDGER"); path != "" {
		serveForever(path)
	}
	os.Exit(m.Run())
}

func serveForever(path string) {
	s, err := stripesim.New(stripesim.Config{LedgerPath: path})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	h := httptest.NewServer(s)
	fmt.Println(h.URL)
	select {}
}

// child starts a simulator process and gives its address.
func child(t *testing.T, ledger string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STRIPESIM_TEST_LEDGER="+ledger)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "http") {
		t.Fatalf("child said %q, %v", line, err)
	}
	return cmd, strings.TrimSpace(line)
}

func charge(url, key string) (id string, err error) {
	req, err := http.NewRequest("POST", url+"/v1/charges", strings.NewReader(visa))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer sk_test_1")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var c struct{ ID string }
	if err := json.NewDecoder(resp.Body).Decode(&c); err != nil {
		return "", err
	}
	return c.ID, nil
}

// A killed process has lost no charge that it answered, and its keys still stand for them.
func TestKill(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	acknowledged := sync.Map{} // key: charge
	for round := range 3 {
		cmd, url := child(t, ledger)
		var wg sync.WaitGroup
		for worker := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					key := fmt.Sprintf("r%d-w%d-%d", round, worker, i)
					id, err := charge(url, key)
					if err != nil {
						return // killed
					}
					acknowledged.Store(key, id)
				}
			})
		}
		time.Sleep(150 * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		_ = cmd.Wait()
	}
	_, url := child(t, ledger)
	n := 0
	acknowledged.Range(func(key, id any) bool {
		n++
		if again, err := charge(url, key.(string)); err != nil || again != id {
			t.Errorf("key %s stood for %s, now %s (%v)", key, id, again, err)
			return false
		}
		return true
	})
	if n < 10 {
		t.Errorf("only %d charges were acknowledged: nothing was tried", n)
	}
}

// Everything that can be asked is the same after a restart.
func TestReplayedLedgerEqualsLiveState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	views := []string{
		"/v1/charges?limit=100", "/v1/refunds?limit=100", "/v1/customers?limit=100", "/v1/events?limit=100", "/v1/balance",
		"/_sim/ledger", "/v1/charges/search?query=status:'failed'",
	}
	see := func(s *sim) (out []string) {
		for _, v := range views {
			out = append(out, s.as("Bearer sk_test_1", v).raw)
		}
		return out
	}
	posts := func(s *sim) (out []string) {
		cust := s.do("POST", "/v1/customers", "c", "email=a@example.com&source=tok_amex&metadata[x]=y")
		c := s.pay("k1", visa+"&metadata[order]=7&description=d&statement_descriptor_suffix=x&receipt_email=a@b.c")
		out = append(out, cust.raw, c.raw)
		out = append(out, s.do("POST", "/v1/charges", "k2", "amount=2000&currency=usd&source=tok_chargeDeclinedLostCard").raw)
		out = append(out, s.do("POST", "/v1/refunds", "k3", "charge="+c.id()+"&amount=500&reason=duplicate").raw)
		a := s.pay("k4", "amount=900&currency=eur&customer="+cust.id()+"&capture=false")
		out = append(out, a.raw, s.do("POST", "/v1/charges/"+a.id()+"/capture", "k5", "amount=700").raw)
		out = append(out, s.do("POST", "/v1/charges", "k6", "amount=2000&currency=usd&source=tok_createDispute").raw)
		return append(out, s.do("POST", "/v1/charges", "k7", "amount=2000&currency=usd&source=tok_none").raw)
	}
	s := start(t, stripesim.Config{LedgerPath: path})
	first := posts(s)
	s.fault(stripesim.Rule{Count: 1, Fault: stripesim.Fault{Type: stripesim.StatusAfter, Status: 503}})
	stored := s.do("POST", "/v1/charges", "k8", visa)
	refund := s.do("POST", "/v1/refunds", "k9", "charge="+s.pay("k10", visa).id())
	if err := s.FailRefund(refund.id(), ""); err != nil {
		t.Fatal(err)
	}
	before := see(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := start(t, stripesim.Config{LedgerPath: path})
	after := see(again)
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("%s:\nbefore %s\nafter  %s", views[i], before[i], after[i])
		}
	}
	for i, r := range posts(again) {
		if r != first[i] {
			t.Errorf("key %d:\nbefore %s\nafter  %s", i, first[i], r)
		}
	}
	if r := again.do("POST", "/v1/charges", "k8", visa); r.status != 503 || r.raw != stored.raw {
		t.Errorf("stored failure: %d %s", r.status, r.raw)
	}
}

func TestTornLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	s := start(t, stripesim.Config{LedgerPath: path})
	for i := range 3 {
		s.pay(fmt.Sprint(i), visa)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for name, c := range map[string]struct {
		content []byte
		charges int64 // -1: refused
	}{
		"half a line":          {whole[:len(whole)-20], 2},
		"no line end":          {whole[:len(whole)-1], 2},
		"one byte":             {whole[:last+1], 2},
		"zeros":                {append(bytes.Clone(whole), make([]byte, 512)...), 3},
		"zeros and a line end": {append(append(bytes.Clone(whole), make([]byte, 9)...), '\n'), 3},
		"damage in the middle": {bytes.Replace(whole, []byte(`{"op"`), []byte(`{"o`), 1), -1},
		"junk in the middle":   {append([]byte("junk\n"), whole...), -1},
		"empty":                {nil, 0},
	} {
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := stripesim.New(stripesim.Config{LedgerPath: path})
		if c.charges < 0 {
			if err == nil {
				t.Errorf("%s: opened", name)
				_ = again.Close()
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n := again.Stats().Charges; n != c.charges {
			t.Errorf("%s: %d charges, want %d", name, n, c.charges)
		}
		// What was cut off must not stick to what comes next.
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/v1/charges", strings.NewReader(visa))
		r.Header = http.Header{"Authorization": {"Bearer sk_test_1"}, "Content-Type": {"application/x-www-form-urlencoded"}}
		again.ServeHTTP(w, r)
		_ = again.Close()
		if again, err = stripesim.New(stripesim.Config{LedgerPath: path}); err != nil || again.Stats().Charges != c.charges+1 {
			t.Errorf("%s: after another charge: %v", name, err)
			continue
		}
		_ = again.Close()
	}
}

func TestLedgerHasOneOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	s := start(t, stripesim.Config{LedgerPath: path})
	if other, err := stripesim.New(stripesim.Config{LedgerPath: path}); err == nil {
		_ = other.Close()
		t.Error("a second simulator writes to the same ledger")
	}
	_ = s.Close()
	if _, err := s.try("POST", "/v1/charges", "k", visa); err == nil {
		t.Error("a closed ledger acknowledged a charge")
	}
}

func TestReset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	s := start(t, stripesim.Config{LedgerPath: path})
	for i := range 20 {
		s.pay(fmt.Sprint(i), visa)
	}
	s.control("POST", "/_sim/reset", "")
	if st := s.Stats(); st.Charges != 0 || st.Requests != 0 || st.DistinctKeys != 0 {
		t.Errorf("%+v", st)
	}
	s.pay("1", visa)
	_ = s.Close()
	if info, err := os.Stat(path); err != nil || info.Size() > 2000 {
		t.Errorf("the ledger was not emptied: %v %v", info.Size(), err)
	}
	if again := start(t, stripesim.Config{LedgerPath: path}); again.Stats().Charges != 1 {
		t.Errorf("%+v", again.Stats())
	}
}
