// Package paidonce holds what describes the product: its programs and packages are in the folders
// below.
package paidonce

import _ "embed" // openapi.yaml

// OpenAPI is openapi.yaml, the description of the API, as it is written.
//
//go:embed openapi.yaml
var OpenAPI []byte
