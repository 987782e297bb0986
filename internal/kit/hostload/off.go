package hostload

import (
	"errors"

	"golang.org/x/sys/unix"
)

// isPressureOff tells of an error by which a kernel that could count pressure says that it does not:
// it was built or started so.
func isPressureOff(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTSUP)
}
