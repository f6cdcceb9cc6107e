package dbtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
)

// template returns the name of the migrated database that tests' databases are copied from. It
// creates it if need be.
func (h *host) template(ctx context.Context) (string, error) {
	h.templateOnce.Do(func() { h.templateName, h.templateErr = h.makeTemplate(ctx) })
	return h.templateName, h.templateErr
}

func (h *host) makeTemplate(ctx context.Context) (string, error) {
	hash, err := migrationsHash()
	if err != nil {
		return "", err
	}
	name := templatePrefix + hash
	if err := h.hold(ctx, hash); err != nil {
		return "", err
	}
	conn, err := pgx.Connect(ctx, h.admin.String())
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // lets go of the lock too
	// One process creates it; the others wait here and then find it.
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1, 0)", lockClass+1); err != nil {
		return "", err
	}
	var exists bool
	q := "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"
	if err := conn.QueryRow(ctx, q, name).Scan(&exists); err != nil || exists {
		return name, err
	}
	// It is created under the name of a test's database, which a later process drops if we are
	// killed, and renamed when it is complete.
	draft := testPrefix + h.token + "_template"
	if err := h.createDatabase(ctx, draft, ""); err != nil {
		return "", err
	}
	if err := db.Migrate(ctx, h.url(draft), db.MigrateOptions{}); err != nil {
		return "", errors.Join(err, h.exec(ctx, dropStatement(draft)))
	}
	from, to := pgx.Identifier{draft}.Sanitize(), pgx.Identifier{name}.Sanitize()
	// It accepts no connections, so that nobody is connected when it is copied.
	if err := h.exec(ctx, "ALTER DATABASE "+from+" ALLOW_CONNECTIONS false"); err != nil {
		return "", err
	}
	if err := h.exec(ctx, "ALTER DATABASE "+from+" RENAME TO "+to); err != nil {
		return "", err
	}
	return name, h.sweep(ctx, templatePrefix, hash) // the templates of older migrations
}

// migrationsHash returns a hash of the migrations' names and texts: other migrations need another
// template.
func migrationsHash() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(db.Migrations, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(db.Migrations, path)
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
		return err
	})
	// Sixteen hex digits are enough: nobody chooses migrations to collide.
	return hex.EncodeToString(sum.Sum(nil))[:16], err
}
