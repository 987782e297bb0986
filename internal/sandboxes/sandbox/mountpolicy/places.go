package mountpolicy

import (
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// checkOtherNames refuses a source that shows the installation's own directories, or a part of
// them, under another name: itself, or by what is mounted below it, which is shown with it.
func (r Rules) checkOtherNames(table hostpath.Table, resolved string) error {
	own, at := findShownOwn(table, r.Own, resolved)
	switch {
	case own == "":
		return nil
	case at == resolved:
		return fault.Invalid("%s can't be mounted: it is another name of a place in or above %s, where Cofferdam keeps its own state", resolved, own)
	}
	return fault.Invalid("%s can't be mounted: at %s there is another name of a place in or above %s, where Cofferdam keeps its own state", resolved, at, own)
}

// findShownOwn finds the first of own directories that a path shows, and where; "" if none.
func findShownOwn(table hostpath.Table, owned []string, path string) (own, at string) {
	shown := table.Shown(path)
	for _, own := range owned {
		s, ok := table.SpotOf(own)
		if !ok {
			continue
		}
		for _, m := range shown {
			if m.Shows.Device == s.Device && (isWithin(s.Path, m.Shows.Path) || isWithin(m.Shows.Path, s.Path)) {
				return own, m.At
			}
		}
	}
	return "", ""
}
