//go:build !long

package audit

// In ordinary runs each call fails once, in one of the four ways, and the power at
// every third.
const (
	mutations   = 750
	faultStride = 4
	crashStride = 3
)
