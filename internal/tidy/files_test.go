package tidy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// ofOneMachine matches paths and addresses that exist only on the author's machine or network. The
// patterns are written so that they do not match themselves.
var ofOneMachine = []*regexp.Regexp{
	regexp.MustCompile(`(?:^|[^\w.*}-])/(?:work|root)/`),
	regexp.MustCompile(`(?:^|[^\w.*}-])/(?:home|Users)/[a-z]\w*/`),
	regexp.MustCompile(`proxy\.golang\.org`),
	regexp.MustCompile(`registry\.npmjs\.org`),
}

// everywhere matches exceptions: they are the same on every machine that has them.
var everywhere = regexp.MustCompile(`/home/linuxbrew/`)

// files returns the names of all files of the repository, including those that are not committed
// yet.
func files(t *testing.T) []string {
	t.Helper()
	// This makes go test notice when the list changes.
	_, _ = os.Stat(filepath.Join(root, ".git", "index"))
	git := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others",
		"--exclude-standard")
	git.Dir = root
	list, err := git.Output()
	if err != nil {
		t.Skipf("not a checkout: %v", err)
	}
	return strings.Split(strings.Trim(string(list), "\x00"), "\x00")
}

// mark matches the number of an entry in a list that is not in the repository. A few words say
// more.
var mark = regexp.MustCompile(`\b(?:[Tt]raps? \d+|PB-\d+|N-\d{3})\b`)

func TestNoPathsOfOneMachine(t *testing.T) {
	eachLine(t, func(at, line string) {
		if found := machinePath(line); found != "" {
			t.Errorf("%s: %q belongs to one machine", at, found)
		}
	})
}

func TestNoMarksOfOtherDocuments(t *testing.T) {
	eachLine(t, func(at, line string) {
		if !strings.ContainsAny(line, "0123456789") { // most lines, and cheaper to see
			return
		}
		if found := mark.FindString(line); found != "" {
			t.Errorf("%s: %q is a number in a list that nobody has: say in words what it is", at,
				found)
		}
	})
}

// eachLine calls visit for each line of the repository's files of text, with its place.
func eachLine(t *testing.T, visit func(at, line string)) {
	t.Helper()
	for _, name := range files(t) {
		if filepath.Base(name) == "go.sum" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			continue // removed but not yet committed, a link to a folder, or no text
		}
		for i, line := range strings.Split(string(text), "\n") {
			visit(name+":"+strconv.Itoa(i+1), line)
		}
	}
}

// machinePath returns the part of a line that belongs to one machine, or nothing.
func machinePath(line string) string {
	if !strings.ContainsAny(line, "/.") { // cheaper to see
		return ""
	}
	line = everywhere.ReplaceAllString(line, "")
	for _, pattern := range ofOneMachine {
		if found := pattern.FindString(line); found != "" {
			return found
		}
	}
	return ""
}
