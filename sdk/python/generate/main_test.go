package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const root = "../../../"

func TestSchemasAreFresh(t *testing.T) {
	t.Parallel()
	written := filepath.Join(t.TempDir(), "schemas.py")
	if err := generate(root+description, written); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(root + schemas)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not what %s gives: run go run ./sdk/python/generate, or make sdk", schemas, description)
	}
}

func TestPython(t *testing.T) {
	t.Parallel()
	const from = `
paths:
  /v1/things:
    get:
      operationId: listThings
      parameters:
        - { name: limit, in: query, description: How many., schema: { type: integer, minimum: 1, maximum: 9 } }
        - { name: Prefer, in: header, schema: { type: string } }
    post: { operationId: createThing, parameters: [{ name: x, in: query, schema: { type: string } }] }
components:
  schemas:
    Health: { type: object, properties: { status: { type: string } } }
    Thing:
      type: object
      description: |
        Two

        paragraphs with a \ and """ and "
      required: [id, of]
      properties:
        id: { type: string, minLength: 1, maxLength: 5 }
        text: { type: string, nullable: true, description: "It is \"quoted\"" }
        of: { $ref: "#/components/schemas/Kind" }
        parts: { type: array, items: { $ref: "#/components/schemas/Part" } }
        pairs: { type: object, additionalProperties: { type: integer } }
        in_side: { type: object, required: [a], properties: { a: { oneOf: [{ type: boolean }, { $ref: "#/components/schemas/Part" }] } } }
    Kind: { type: string, enum: [one, two], description: Which. }
    Part: { type: object, nullable: true, properties: { n: { type: integer, minimum: 0 } } }
`
	const want = header + `

class ThingInSide(TypedDict):
    a: Union[bool, Optional[Part]]


class _ThingRequired(TypedDict):
    id: str
    """From 1 to 5 characters."""
    of: Kind


class Thing(_ThingRequired, total=False):
    """Two

    paragraphs with a \\ and \"\"\" and "
    """

    text: Optional[str]
    """It is "quoted" """
    parts: list[Optional[Part]]
    pairs: dict[str, int]
    in_side: ThingInSide


Kind = Literal["one", "two"]
"""Which."""


class Part(TypedDict, total=False):
    n: int
    """At least 0."""


class ListThingsQuery(TypedDict, total=False):
    """What to list."""

    limit: int
    """How many. From 1 to 9."""
`
	var d document
	if err := yaml.Unmarshal([]byte(from), &d); err != nil {
		t.Fatal(err)
	}
	if got, err := python(&d); err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := python(&document{Components: struct{ Schemas ordered[*schema] }{ordered[*schema]{{"Thing", &schema{Type: "number"}}}}}); err == nil || !strings.Contains(err.Error(), `Thing: no Python type for "number"`) {
		t.Errorf("a type that is not known: %v", err)
	}
}
