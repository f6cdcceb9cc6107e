package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command that the help shows has a page, and two builds of one commit have the same pages.
func TestManPages(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
	dirs := []string{filepath.Join(t.TempDir(), "new", "man"), t.TempDir()}
	for _, dir := range dirs {
		var stdout, stderr bytes.Buffer
		if code := run([]string{"man", dir}, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
			t.Fatalf("exit code %d\n%s", code, &stderr)
		}
	}
	pages := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dirs[0], name))
		if err != nil {
			t.Error(err)
		}
		if again, err := os.ReadFile(filepath.Join(dirs[1], name)); !bytes.Equal(page, again) {
			t.Errorf("%s differs the second time: %v", name, err)
		}
		pages++
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	walk(newRootCommand())
	if made, err := os.ReadDir(dirs[0]); len(made) != pages {
		t.Errorf("%d pages of %d commands: %v", len(made), pages, err)
	}
	page, err := os.ReadFile(filepath.Join(dirs[0], "paidonce-stripesim.1"))
	if err != nil || !bytes.Contains(page, []byte("\nSTRIPE_API_BASE at it.\n")) ||
		!bytes.Contains(page, []byte("_sim/faults")) {
		t.Errorf("a name with underscores is not on the page: %v\n%s", err, page)
	}
}

func TestCompletion(t *testing.T) {
	for shell, want := range map[string]string{
		"bash": "complete -o default -F __start_paidonce paidonce", "zsh": "#compdef paidonce",
		"fish": "complete -c paidonce",
	} {
		var stdout, stderr bytes.Buffer
		if code := run([]string{"completion", shell}, &stdout, &stderr); code != 0 ||
			!strings.Contains(stdout.String(), want) {
			t.Errorf("%s: exit code %d, without %q\n%s", shell, code, want, &stderr)
		}
	}
	for _, args := range [][]string{{"completion"}, {"completion", "sh"}} {
		var stdout, stderr bytes.Buffer
		if code := run(args, &stdout, &stderr); code != exitUsage || stdout.Len() > 0 {
			t.Errorf("%v: exit code %d, want %d\n%s", args, code, exitUsage, &stdout)
		}
	}
}

func TestVersion(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}
	if got := versionOf(info); got != "v1.2.3 (revision unknown)" {
		t.Error(got)
	}
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "5f5105b"},
		{Key: "vcs.modified", Value: "false"}}
	if got := versionOf(info); got != "v1.2.3 (revision 5f5105b)" {
		t.Error(got)
	}
	info.Settings[1].Value = "true"
	if got := versionOf(info); got != "v1.2.3 (revision 5f5105b, modified)" {
		t.Error(got)
	}
}
