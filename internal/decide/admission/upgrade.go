package admission

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Bounds of what is kept of paths inside of served files, for one sandbox, and of what is
// told of them.
const (
	maxNewFiles = 60
)

// compareInstalled tells what of a release differs from that which the run has already of
// the same package.
func (t *tenant) compareInstalled(e *evidence.Evidence, p pkgref.Ref, paths []string) {
	before, was := t.served.Projects()[p.Project()]
	if !was || records.RefOf(before).Release() == p.Release() {
		return
	}
	had := t.served.Inside(records.RefOf(before).Release())
	e.Installed = before.InstalledVersion
	if len(had) == 0 || len(paths) == 0 {
		e.FilesUnknown = true
		return
	}
	known := map[string]bool{}
	for _, path := range had {
		known[path] = true
	}
	for _, path := range paths {
		if !known[path] && !ownInfo(path) && len(e.NewFiles) < maxNewFiles {
			e.NewFiles = append(e.NewFiles, path)
		}
	}
}

// ownInfo tells a file that every release has under a name of its own.
func ownInfo(path string) bool {
	top, _, _ := strings.Cut(path, "/")
	return strings.HasSuffix(top, ".dist-info")
}
