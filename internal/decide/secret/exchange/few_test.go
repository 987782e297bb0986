//go:build !long

package exchange

// How much is tried by tests that draw texts by lot. The seeds are fixed, so that these are the first ones
// of those that are tried with the build tag long.
const (
	chainRounds = 600
	frameRounds = 800
)
