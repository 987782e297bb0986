package seccomp

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestABadProgramIsNoMissingKernel: that this kernel refuses a program does not mean that
// it has no filters, so it is an error. The kernel takes 4096 instructions.
func TestABadProgramIsNoMissingKernel(t *testing.T) {
	t.Parallel()
	if err := Available(); err != nil {
		t.Fatalf("INCONCLUSIVE: this kernel has no filters: %v", err)
	}
	err := enterFilter(make([]uint32, 4_096))
	if !errors.Is(err, unix.EINVAL) || errors.Is(err, ErrMissing) {
		t.Errorf("a program that is too long: %v", err)
	}
}
