package main

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// What POST /v1/charges takes, the command takes as well.
func TestChargesCreateHasEveryParameter(t *testing.T) {
	var spec struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := yaml.Unmarshal(readFile(t, "openapi.yaml"), &spec); err != nil {
		t.Fatal(err)
	}
	parameters := spec.Components.Schemas["ChargeParams"].Properties
	if len(parameters) < 10 {
		t.Fatalf("there are only %v", parameters)
	}
	flags := newChargesCreateCommand().Flags()
	for name := range parameters {
		switch name {
		case "capture":
			name = "hold"
		case "expand": // a new charge has nothing to show in full
			continue
		}
		if flags.Lookup(strings.ReplaceAll(name, "_", "-")) == nil {
			t.Errorf("there is no flag for %s", name)
		}
	}
}
