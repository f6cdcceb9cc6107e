package idemkeys

import "paidonce/db"

// Passes reports whether an error of the database passes by itself, so that the same statement is
// worth running again; see [db.Passes].
func Passes(err error) bool { return db.Passes(err) }
