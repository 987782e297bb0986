package npm

import (
	"errors"
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxValue bounds one value of a packument, so that memory is bounded by it
// and not by the page. A value is one member of one manifest.
const maxValue = 8 << 20

// errTooLarge is what a reader of an allowance gets past it.
var errTooLarge = errors.New("a value has more bytes than are read")

// allowance is a page that is read up to a limit, which the parser moves on
// from value to value.
type allowance struct {
	r    io.Reader
	read int64
	most int64
}

// allowFrom lets the value that begins at offset be read.
func (a *allowance) allowFrom(offset int64) { a.most = offset + maxValue }

func (a *allowance) Read(p []byte) (int, error) {
	left := a.most - a.read
	if left <= 0 {
		return 0, fault.Wrap(fault.ErrInvalid, errTooLarge, "the packument has a value of more than %d MiB", maxValue>>20)
	}
	n, err := a.r.Read(p[:min(int64(len(p)), left)])
	a.read += int64(n)
	return n, err
}
