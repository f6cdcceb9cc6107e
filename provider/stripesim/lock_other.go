//go:build !unix

package stripesim

import "os"

// lock does nothing where there is no flock: not to start two simulators on one ledger is up to the
// user there.
func lock(*os.File) error { return nil }
