package golang

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/mod/modfile"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// maxRequirements bounds the requirements of one module; the largest real ones
// have some two thousand.
const maxRequirements = 20_000

// mod is what a go.mod says that matters here.
type mod struct {
	path         string // "" if it does not say, as in files of before modules
	requirements []ecosystem.Requirement
}

// readMod reads a go.mod as the go command reads those of dependencies: replace
// and exclude count for nothing, and lines of newer versions are passed over. A
// requirement is the least version that will do.
func readMod(data []byte) (mod, error) {
	if len(data) > maxMod || !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return mod{}, fault.Invalid("the go.mod is not text that the go command would read")
	}
	f, err := modfile.ParseLax("go.mod", data, nil)
	if err != nil {
		return mod{}, fault.Wrap(fault.ErrInvalid, err, "the go.mod can't be read")
	}
	if len(f.Require) > maxRequirements {
		return mod{}, fault.Invalid("the go.mod has more than %d requirements", maxRequirements)
	}
	var m mod
	if f.Module != nil {
		m.path = f.Module.Mod.Path
	}
	for _, r := range f.Require {
		// A path that no module can be required as admits nothing.
		if isRelease(r.Mod.Path, r.Mod.Version) {
			m.requirements = append(m.requirements, ecosystem.Requirement{Name: r.Mod.Path, Specifier: ">=" + r.Mod.Version})
		}
	}
	return m, nil
}
