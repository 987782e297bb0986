//go:build !long

package unended_test

// openings is how many there are of each kind.
const openings = 20
