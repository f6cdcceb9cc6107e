// Command generate writes the types of the Python SDK from openapi.yaml. It is run at the root: go
// run ./sdk/python/generate
package main

import (
	"fmt"
	"os"

	"go.yaml.in/yaml/v4"
)

const (
	description = "openapi.yaml"
	schemas     = "sdk/python/paidonce/schemas.py"
)

func main() {
	if err := generate(description, schemas); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(from, to string) error {
	text, err := os.ReadFile(from) //nolint:gosec // named above
	if err != nil {
		return err
	}
	var d document
	if err := yaml.Unmarshal(text, &d); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	code, err := python(&d)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, []byte(code), 0o644) //nolint:gosec // a source file, for all to read
}

// document is what is read of openapi.yaml, in its order.
type document struct {
	Paths      ordered[ordered[operation]]
	Components struct {
		Schemas ordered[*schema]
	}
}

type operation struct {
	OperationID string `yaml:"operationId"`
	Parameters  []struct {
		Name        string
		In          string
		Description string
		Schema      *schema
	}
}

type schema struct {
	Ref         string `yaml:"$ref"`
	Type        string
	Nullable    bool
	Enum        []string
	Description string
	Minimum     *int64
	Maximum     *int64
	MinLength   *int64 `yaml:"minLength"`
	MaxLength   *int64 `yaml:"maxLength"`
	Required    []string
	Properties  ordered[*schema]
	Additional  yaml.Node `yaml:"additionalProperties"` // false, or a schema
	Items       *schema
	OneOf       []*schema `yaml:"oneOf"`
}

// ordered is a mapping whose order is kept, so that what is generated reads like the description.
type ordered[T any] []member[T]

type member[T any] struct {
	name  string
	value T
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (o *ordered[T]) UnmarshalYAML(node *yaml.Node) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		m := member[T]{name: node.Content[i].Value}
		if err := node.Content[i+1].Decode(&m.value); err != nil {
			return err
		}
		*o = append(*o, m)
	}
	return nil
}
