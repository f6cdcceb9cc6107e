//go:build !race

package race

// Enabled is whether this program was built with the race detector.
const Enabled = false
