package archive

import "github.com/cofferdam-dev/cofferdam/internal/kit/fault"

// The defaults of Limits.
const (
	defaultMembers  = 200_000
	defaultUnpacked = 8 << 30
	defaultRatio    = 200
	defaultPath     = 1024
)

// ratioFree is what an archive may unpack to before its ratio is looked at:
// small archives of blank files have high ratios and do no harm.
const ratioFree = 64 << 20

func (l Limits) filled() Limits {
	if l.Members == 0 {
		l.Members = defaultMembers
	}
	if l.Unpacked == 0 {
		l.Unpacked = defaultUnpacked
	}
	if l.Ratio == 0 {
		l.Ratio = defaultRatio
	}
	if l.Path == 0 {
		l.Path = defaultPath
	}
	return l
}

// checkSize refuses an archive of packed bytes that unpacks to too much.
func (l Limits) checkSize(unpacked, packed int64) error {
	if unpacked > l.Unpacked {
		return fault.Invalid("the archive unpacks to more than %d bytes", l.Unpacked)
	}
	if unpacked > ratioFree && unpacked/max(packed, 1) > l.Ratio {
		return fault.Invalid("the archive unpacks to more than %d times its size", l.Ratio)
	}
	return nil
}
