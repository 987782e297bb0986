package admission

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// releaseOf is the one key of a release in the ledger. Python's "1.0" and
// "1.0.0" are one release, whatever a file's name and its metadata say.
func releaseOf(p pkgref.Ref) pkgref.Ref {
	if p.Ecosystem != pkgref.Python {
		return p
	}
	epoch, rest, found := strings.Cut(p.Version, "!")
	if !found {
		epoch, rest = "", p.Version
	} else {
		epoch += "!"
	}
	suffix := strings.TrimLeft(rest, "0123456789.")
	release := rest[:len(rest)-len(suffix)]
	release, dot := strings.CutSuffix(release, ".") // of ".dev1", ".post1"
	for strings.HasSuffix(release, ".0") {
		release = strings.TrimSuffix(release, ".0")
	}
	if dot {
		release += "."
	}
	p.Version = epoch + release + suffix
	return p
}
