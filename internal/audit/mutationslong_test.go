//go:build long

package audit

// Each call fails in each of the ways.
const (
	mutations   = 10_000
	faultStride = 1
)
