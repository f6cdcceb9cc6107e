// Package browser lets tests drive a real browser: Chromium without a window, over its debugging
// protocol on a pipe.
package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait for a page; a machine on which it does not suffice is broken.
const patience = 60 * time.Second

// Find returns Chromium's program. Without one the test is skipped, or fails if
// PAIDONCE_NEED_BROWSER is set, as on a CI server.
func Find(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	if os.Getenv("PAIDONCE_NEED_BROWSER") != "" {
		t.Fatal("no Chromium on this machine")
	}
	t.Skip("no Chromium on this machine")
	return ""
}

// Flags are what Chromium needs to run without a window, also as root and in a container.
var Flags = []string{
	"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
}

// Page is a page of a browser of its own. It is for one goroutine.
type Page struct {
	t       testing.TB
	out     io.Writer
	session string
	calls   int

	mu      sync.Mutex
	answers map[int]chan answer
}

type answer struct {
	ID     int
	Result json.RawMessage
	Error  *struct{ Message string }
}

// Open starts a browser with an empty page. It ends with the test.
func Open(t testing.TB) *Page {
	t.Helper()
	program := Find(t)
	profile, err := os.MkdirTemp("", "paidonce-browser-") //nolint:usetesting // what the browser's last processes still write may stay
	if err != nil {
		t.Fatal(err)
	}
	theirIn, out, errIn := os.Pipe()
	in, theirOut, errOut := os.Pipe()
	if err := errors.Join(errIn, errOut); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, append([]string{
		"--remote-debugging-pipe", "--user-data-dir=" + profile, "about:blank",
	}, Flags...)...)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4, as the protocol has it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirIn.Close(), theirOut.Close()
	p := &Page{t: t, out: out, answers: map[int]chan answer{}}
	t.Cleanup(func() {
		_, _ = p.call("Browser.close", nil)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_, _ = out.Close(), in.Close()
		_ = os.RemoveAll(profile)
	})
	go p.read(in)
	var made struct{ TargetID, SessionID string }
	p.must("Target.createTarget", map[string]any{"url": "about:blank"}, &made)
	p.must("Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made)
	p.session = made.SessionID
	return p
}

// read hands each answer to its call, and passes over events.
func (p *Page) read(in io.Reader) {
	r := bufio.NewReader(in)
	for {
		message, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(message[:len(message)-1], &a) != nil {
			continue
		}
		p.mu.Lock()
		waiting := p.answers[a.ID]
		delete(p.answers, a.ID)
		p.mu.Unlock()
		if waiting != nil {
			waiting <- a
		}
	}
}

func (p *Page) call(method string, params any) (json.RawMessage, error) {
	p.calls++
	a := make(chan answer, 1)
	p.mu.Lock()
	p.answers[p.calls] = a
	p.mu.Unlock()
	message := map[string]any{"id": p.calls, "method": method}
	if params != nil {
		message["params"] = params
	}
	if p.session != "" && method != "Browser.close" {
		message["sessionId"] = p.session
	}
	b, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	if _, err := p.out.Write(append(b, 0)); err != nil {
		return nil, err
	}
	select {
	case got := <-a:
		if got.Error != nil {
			return nil, errors.New(method + ": " + got.Error.Message)
		}
		return got.Result, nil
	case <-time.After(patience):
		return nil, fmt.Errorf("%s: no answer within %v", method, patience)
	}
}

func (p *Page) must(method string, params, into any) {
	p.t.Helper()
	got, err := p.call(method, params)
	if err == nil && into != nil {
		err = json.Unmarshal(got, into)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// Go opens an address, as if it had been typed.
func (p *Page) Go(address string) {
	p.t.Helper()
	p.must("Page.navigate", map[string]any{"url": address}, nil)
}

// Eval returns what an expression of JavaScript is on the page, as text.
func (p *Page) Eval(expression string) (string, error) {
	got, err := p.call("Runtime.evaluate", map[string]any{"expression": "String(" + expression + ")"})
	if err != nil {
		return "", err
	}
	var v struct {
		Result           struct{ Value string }
		ExceptionDetails *struct{ Text string }
	}
	if err := json.Unmarshal(got, &v); err != nil {
		return "", err
	}
	if v.ExceptionDetails != nil {
		return "", errors.New(expression + ": " + v.ExceptionDetails.Text)
	}
	return v.Result.Value, nil
}

// Wait waits until an expression of JavaScript is true. While a page is being left nothing is.
func (p *Page) Wait(expression string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got, err := p.Eval("!!(" + expression + ")")
		if err == nil && got == "true" {
			return
		}
		if time.Now().After(deadline) {
			text, _ := p.Eval("location.href + ' ' + document.body.innerText")
			p.t.Fatalf("waited %v in vain for %s (%v); the page is %s", patience, expression, err, text)
		}
	}
}

// Click waits for an element, found by a CSS selector, and clicks on it.
func (p *Page) Click(selector string) {
	p.t.Helper()
	quoted, _ := json.Marshal(selector)
	p.Wait("document.querySelector(" + string(quoted) + ")")
	if _, err := p.Eval("document.querySelector(" + string(quoted) + ").click()"); err != nil {
		p.t.Fatal(err)
	}
}

// Says waits until the page shows a text.
func (p *Page) Says(text string) {
	p.t.Helper()
	quoted, _ := json.Marshal(text)
	p.Wait("document.body.innerText.includes(" + string(quoted) + ")")
}
