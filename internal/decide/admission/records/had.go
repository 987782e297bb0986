package records

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Had is what a run got, as its records tell: files, and the metadata of releases, by
// which clients that install nothing resolve.
type Had struct {
	Highest  map[pkgref.Ref]pkgref.Version // by project
	Releases map[pkgref.Ref][]pkgref.Ref   // by project
	// files and words are when a project or a release was had last, by the number of the
	// record: a file of it, or a file or its metadata.
	files, words map[pkgref.Ref]uint64
}

// NewHad is of a run that got nothing.
func NewHad() Had {
	return Had{
		Highest: map[pkgref.Ref]pkgref.Version{}, Releases: map[pkgref.Ref][]pkgref.Ref{},
		files: map[pkgref.Ref]uint64{}, words: map[pkgref.Ref]uint64{},
	}
}

// TellsOfRelease tells whether a record is of metadata of one release that was shown.
func TellsOfRelease(r audit.Record) bool {
	return r.Outcome == audit.Shown && r.Detail[DetailKind] == door.ShownMetadata && r.InstalledVersion != ""
}

// Take notes a record of a file that was served, or of metadata that was shown.
func (h Had) Take(r audit.Record) {
	p, release := ProjectOf(r), RefOf(r)
	v, _ := pkgref.ParseVersion(p.Ecosystem, r.InstalledVersion)
	if best, known := h.Highest[p]; !known || v.Compare(best) > 0 {
		h.Highest[p] = v
	}
	if !slices.Contains(h.Releases[p], release) {
		h.Releases[p] = append(h.Releases[p], release)
	}
	for _, ref := range []pkgref.Ref{p, release} {
		h.words[ref] = r.Seq
		if r.Outcome == audit.Served {
			h.files[ref] = r.Seq
		}
	}
}

// Of tells whether anything of a project was had.
func (h Had) Of(project pkgref.Ref) bool {
	_, known := h.Highest[project]
	return known
}

// After tells whether the run got later what a record says that it could not have: a
// file of the release, or of a page and of metadata any of these. An alarm stays one.
func (h Had) After(seq uint64, r audit.Record) bool {
	if r.Kind != audit.KindPackage || r.Package == "" || r.Detail[DetailAlarm] != "" {
		return false
	}
	if r.File == "" || r.Detail[DetailKind] != "" {
		return h.words[RefOf(r)] > seq
	}
	return h.files[RefOf(r)] > seq
}

// Above tells whether something was had of a path above a project's name: then a
// resolver found there what it looked for below.
func (h Had) Above(p pkgref.Ref) bool {
	for i := len(p.Name) - 1; i > 0; i-- {
		if p.Name[i] == '/' && h.Of(pkgref.Ref{Ecosystem: p.Ecosystem, Name: p.Name[:i]}) {
			return true
		}
	}
	return false
}
