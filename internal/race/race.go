// Package race tells tests whether they run with the race detector, with which everything takes
// several times as long, and as much memory.
package race
