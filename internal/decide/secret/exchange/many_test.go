//go:build long

package exchange

// See few_test.go.
const (
	chainRounds = 1500
	frameRounds = 4000
)
