//go:build !long

package audit

// In ordinary runs every second call fails once, in one of the four ways, and the power
// at every third.
const (
	mutations   = 750
	faultStride = 8
	crashStride = 3
)
