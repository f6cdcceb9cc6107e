package e2e

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// proxied returns the address of a proxy before an instance that passes requests on, and gives
// pages of its own instead of the first answers.
func proxied(t *testing.T, p *proc, statuses <-chan int) *proc {
	t.Helper()
	target, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(t.Output(), "proxy: ", 0)
	proxy.ModifyResponse = func(res *http.Response) error {
		select {
		case status := <-statuses:
			_ = res.Body.Close()
			const page = "<html>Sign in</html>"
			res.StatusCode, res.Status = status, fmt.Sprint(status, " ", http.StatusText(status))
			res.Header = http.Header{"Content-Type": {"text/html"}}
			res.Body, res.ContentLength = io.NopCloser(strings.NewReader(page)), int64(len(page))
		default:
		}
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return &proc{url: server.URL}
}

// A proxy says what it likes while the charge is made behind it. Whatever that is, the program of
// each README, and the command line, ends with the one charge that there is: a refusal by the proxy
// frees no name for a second, and a page of it is no answer.
func TestSDKsBehindAProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.serve()
	programs := map[string]func(t *testing.T, p *proc) *exec.Cmd{
		"command line": func(t *testing.T, p *proc) *exec.Cmd {
			return w.programIn(t.TempDir(), p, binary, "charges", "create", "--amount", "2000",
				"--currency", "usd", "--source", "tok_visa", "--key", "order-6735")
		},
		"Go": func(t *testing.T, p *proc) *exec.Cmd {
			dir := t.TempDir()
			program := filepath.Join(dir, "example")
			w.goTool(p, goSDK, nil, "build", "-o", program, "./example")
			return w.programIn(dir, p, program)
		},
		"Python": func(t *testing.T, p *proc) *exec.Cmd {
			needsPython(t)
			return w.python(t.TempDir(), p, nil, "-c", readme(t))
		},
		"TypeScript": func(t *testing.T, p *proc) *exec.Cmd {
			dir := compiled(t)
			text, err := os.ReadFile(filepath.Join(dir, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			block := regexp.MustCompile("(?s)```js\n(.*?)```").FindSubmatch(text)
			if err := os.WriteFile(filepath.Join(dir, "readme.mjs"), block[1], 0o600); err != nil {
				t.Fatal(err)
			}
			return w.node(dir, p, nil, "readme.mjs")
		},
	}
	made := 0
	for name, program := range programs {
		t.Run(name, func(t *testing.T) {
			// room for all: a program that sends nothing fails the test, and does not stop it
			statuses := make(chan int, 8)
			cmd := program(t, proxied(t, server, statuses))
			run := func() (string, error) {
				again := exec.CommandContext(t.Context(), cmd.Args[0], cmd.Args[1:]...)
				again.Path, again.Dir, again.Env = cmd.Path, cmd.Dir, cmd.Env
				out, err := again.CombinedOutput()
				return string(out), err
			}
			for _, status := range []int{400, 402, 404, 413, 415, 422} {
				statuses <- status
				if said, err := run(); err == nil {
					t.Errorf("a page with status %d was taken for an answer: %s", status, said)
				}
			}
			statuses <- http.StatusOK // now with an answer that is to be asked for again
			statuses <- http.StatusCreated
			said, err := run()
			if err != nil || !strings.Contains(said, " succeeded") {
				t.Errorf("%v\n%s", err, said)
			}
			made++
			w.sim.mustHave(t, made)
		})
	}
}
