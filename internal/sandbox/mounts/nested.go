package mounts

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// checkNested refuses a mount inside of another one whose place does not exist
// there: the engine would have to make it, on the host and also below a
// read-only mount.
func checkNested(mounts []Mount) error {
	for _, inner := range mounts {
		for _, outer := range mounts {
			if inner.Destination == outer.Destination || !within(inner.Destination, outer.Destination) {
				continue
			}
			if err := checkPlace(inner, outer); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPlace looks at each step of the way from the outer mount's root to the
// inner one, since the engine does not follow links there either.
func checkPlace(inner, outer Mount) error {
	source, err := os.Stat(inner.Source)
	if err != nil {
		return fault.Invalid("the mount source %s can't be read", inner.Source)
	}
	rel := strings.TrimPrefix(inner.Destination, outer.Destination+"/")
	place, steps := outer.Source, strings.Split(rel, "/")
	for i, step := range steps {
		place = filepath.Join(place, step)
		last := i == len(steps)-1
		info, err := os.Lstat(place)
		switch {
		case err != nil:
			return fault.Invalid("the mount destination %s lies in the mount %s, where it does not exist; make %s first", inner.Destination, outer.Destination, place)
		case !last && !info.IsDir(), last && info.IsDir() != source.IsDir(), last && !info.IsDir() && !info.Mode().IsRegular():
			return fault.Invalid("the mount destination %s lies in the mount %s, where %s is something else than its source; choose another destination", inner.Destination, outer.Destination, place)
		}
	}
	return nil
}
