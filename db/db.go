// Package db holds the schema, the queries (sqlc's output), the pool, and how statements are run
// again after a failure. It knows nothing of what the tables mean.
package db

import "embed"

// Migrations are the goose migrations, embedded: db/migrations/*.sql.
//
//go:embed migrations/*.sql
var Migrations embed.FS
