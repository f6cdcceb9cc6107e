package idemkeys

import "paidonce/db"

// Passes reports whether what was in the way of a question to the database passes by itself, so that the same question is worth asking again; see [db.Passes].
func Passes(err error) bool { return db.Passes(err) }
