package tidy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ofOneMachine matches what means something on the author's machine or network only. The patterns are written so that they do
// not match themselves.
var ofOneMachine = []*regexp.Regexp{
	regexp.MustCompile(`(?:^|[^\w.*}-])/(?:work|root)/`),
	regexp.MustCompile(`(?:^|[^\w.*}-])/(?:home|Users)/[a-z]\w*/`),
	regexp.MustCompile(`proxy\.golang\.org`),
	regexp.MustCompile(`registry\.npmjs\.org`),
}

// everywhere is what matches but is the same on every machine that has it.
var everywhere = regexp.MustCompile(`/home/linuxbrew/`)

// files are the names of all files of the repository. Not only what is committed: what is about to be, too.
func files(t *testing.T) []string {
	t.Helper()
	_, _ = os.Stat(filepath.Join(root, ".git", "index")) // so that go test notices when the list changes
	git := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = root
	list, err := git.Output()
	if err != nil {
		t.Skipf("not a checkout: %v", err)
	}
	return strings.Split(strings.Trim(string(list), "\x00"), "\x00")
}

func TestNoPathsOfOneMachine(t *testing.T) {
	for _, name := range files(t) {
		if filepath.Base(name) == "go.sum" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			continue // removed but not yet committed, a link to a folder, or no text
		}
		for i, line := range strings.Split(string(text), "\n") {
			if found := machinePath(line); found != "" {
				t.Errorf("%s:%d: %q belongs to one machine", name, i+1, found)
			}
		}
	}
}

// machinePath returns what of a line belongs to one machine, or nothing.
func machinePath(line string) string {
	line = everywhere.ReplaceAllString(line, "")
	for _, pattern := range ofOneMachine {
		if found := pattern.FindString(line); found != "" {
			return found
		}
	}
	return ""
}
