//go:build long

package audit

// Each call fails in each of the ways, and the power at each.
const (
	mutations   = 10_000
	faultStride = 1
	crashStride = 1
)
