//go:build !amd64

package seccomp

// olderCalls are refused calls that newer architectures have in one form only.
func olderCalls() []uint32 { return nil }

// ofThisKind are refused calls that only this architecture has.
func ofThisKind() []uint32 { return nil }
