package admission

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// Bounds of what is kept of paths inside of served files, for one sandbox, and of what is
// told of them.
const (
	maxInsidePaths = 50_000
	maxNewFiles    = 60
)

// keepPaths remembers what is inside of a file that is served; t.mu is held. What is not
// kept is told as unknown.
func (t *tenant) keepPaths(ask door.ArtifactAsk) {
	release := ask.Package.Release()
	if len(ask.Paths) == 0 || t.inside[release] != nil || t.insidePaths+len(ask.Paths) > maxInsidePaths {
		return
	}
	t.insidePaths += len(ask.Paths)
	t.inside[release] = slices.Clone(ask.Paths)
}

// compareInstalled tells what of a release differs from that which the run has already of
// the same package.
func (t *tenant) compareInstalled(e *evidence.Evidence, p pkgref.Ref, paths []string) {
	t.mu.Lock()
	before := t.projectsServed()[p.Project()]
	var had []string
	if before != nil {
		had = t.inside[refOf(before.record).Release()]
	}
	t.mu.Unlock()
	if before == nil || refOf(before.record).Release() == p.Release() {
		return
	}
	e.Installed = before.record.InstalledVersion
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
