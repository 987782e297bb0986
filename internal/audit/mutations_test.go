//go:build !long

package audit

// In ordinary runs each call fails once, in one of the four ways.
const (
	mutations   = 750
	faultStride = 4
)
