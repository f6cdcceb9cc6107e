package main

import (
	"context"
	"fmt"
)

// prepareTemplate makes the database that cells are copied from. binary is the product's, or empty
// when it is not measured; before is an older one's, or empty.
func (p *postgres) prepareTemplate(
	ctx context.Context, binary, before string, preload, walFiles int,
) error {
	if before != "" {
		if err := p.makeTemplate(ctx, beforeDB, before, preload); err != nil {
			return err
		}
		_, err := p.admin.Exec(ctx, "CREATE DATABASE "+templateDB+" TEMPLATE "+beforeDB)
		if err == nil {
			err = p.migrateTemplate(ctx, binary)
		}
		if err != nil {
			return err
		}
	} else if err := p.makeTemplate(ctx, templateDB, binary, preload); err != nil {
		return err
	}
	return p.growWAL(ctx, walFiles)
}

// migrateTemplate brings an older binary's database to this one's schema.
func (p *postgres) migrateTemplate(ctx context.Context, binary string) error {
	url := p.server.URL(templateDB)
	if _, err := runProduct(ctx, url, binary, "migrate"); err != nil {
		return err
	}
	db, err := openToFill(ctx, url)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(ctx, "VACUUM ANALYZE")
	return err
}

func (p *postgres) makeTemplate(ctx context.Context, name, binary string, preload int) error {
	url, err := p.server.EnsureDatabase(ctx, name)
	if err != nil {
		return err
	}
	if binary == "" {
		err = migrateFiles(ctx, url)
	} else {
		_, err = runProduct(ctx, url, binary, "migrate")
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	db, err := openToFill(ctx, url)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := p.makeOwner(ctx, db, url, binary); err != nil {
		return err
	}
	if err := fill(ctx, db, &ours, p.owner, preload); err != nil {
		return fmt.Errorf("fill the template: %w", err)
	}
	if binary != "" { // else the first cell whose events need positions would pay for these rows
		if _, err := runProduct(ctx, url, binary, "relay", "--once"); err != nil {
			return err
		}
	}
	_, err = db.Exec(ctx, "VACUUM ANALYZE")
	return err
}

// prepareLean makes the database that the cells with the lean schema are copied from.
func (p *postgres) prepareLean(ctx context.Context, preload int) error {
	url, err := p.server.EnsureDatabase(ctx, leanDB)
	if err != nil {
		return err
	}
	db, err := openToFill(ctx, url)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Exec(ctx, leanSchema); err != nil {
		return err
	}
	if err := fill(ctx, db, &lean, owner{}, preload); err != nil {
		return fmt.Errorf("fill the lean template: %w", err)
	}
	_, err = db.Exec(ctx, "VACUUM ANALYZE")
	return err
}
