package main

import (
	"os"
	"strings"
	"testing"

	"paidonce/charges"
)

// Whoever reads a finding can look it up, in the help and in the manual.
func TestKindsOfDifferenceAreDescribed(t *testing.T) {
	manual, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	help := newAuditCommand().Long
	kinds := []string{
		charges.UnknownHere, charges.UnsettledHere, charges.MissingThere, charges.MadeTwice,
		charges.OtherStatus, charges.OtherAmount, charges.OtherRefunds,
	}
	for _, kind := range kinds {
		if !strings.Contains(help, "\n  "+kind+" ") ||
			!strings.Contains(string(manual), "\n| `"+kind+"` |") {
			t.Errorf("%s is not described", kind)
		}
	}
	source, err := os.ReadFile("../../charges/audit.go")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(source), "// Kinds of difference.\nconst (\n")
	block, _, _ = strings.Cut(block, "\n)")
	if n := strings.Count(block, " = \""); n != len(kinds) {
		t.Errorf("the audit has %d kinds, this test knows %d", n, len(kinds))
	}
}
