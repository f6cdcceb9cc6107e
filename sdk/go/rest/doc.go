// Package rest is what oapi-codegen makes of openapi.yaml: the types, and a client that sends one
// request for each call. Package paidonce stands on it; use that, unless you keep keys and retry
// yourself.
package rest
