//go:build deps

package internal

import (
	_ "github.com/caarlos0/env/v11"
	_ "github.com/fergusstrange/embedded-postgres"
	_ "github.com/getkin/kin-openapi/openapi3"
	_ "github.com/getkin/kin-openapi/openapi3filter"
	_ "github.com/getkin/kin-openapi/routers/gorillamux"
	_ "github.com/go-json-experiment/json"
	_ "github.com/go-json-experiment/json/jsontext"
	_ "github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/labstack/echo/v4/middleware"
	_ "github.com/oapi-codegen/runtime"
	_ "github.com/oklog/ulid/v2"
	_ "github.com/pressly/goose/v3"
	_ "github.com/pressly/goose/v3/lock"
	_ "github.com/spf13/cobra"
	_ "github.com/stripe/stripe-go/v76/client"
	_ "github.com/stripe/stripe-go/v76/webhook"
	_ "golang.org/x/time/rate"
	_ "pgregory.net/rapid"
)
