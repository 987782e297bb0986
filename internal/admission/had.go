package admission

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// had is what a run got, as its records tell: files, and the metadata of releases, by
// which clients that install nothing resolve.
type had struct {
	highest  map[pkgref.Ref]pkgref.Version // by project
	releases map[pkgref.Ref][]pkgref.Ref   // by project
	// files and words are when a project or a release was had last, by the number of the
	// record: a file of it, or a file or its metadata.
	files, words map[pkgref.Ref]uint64
}

func newHad() had {
	return had{
		highest: map[pkgref.Ref]pkgref.Version{}, releases: map[pkgref.Ref][]pkgref.Ref{},
		files: map[pkgref.Ref]uint64{}, words: map[pkgref.Ref]uint64{},
	}
}

// tellsOfRelease tells whether a record is of metadata of one release that was shown.
func tellsOfRelease(r audit.Record) bool {
	return r.Outcome == audit.Shown && r.Detail[detailKind] == door.ShownMetadata && r.InstalledVersion != ""
}

// take notes a record of a file that was served, or of metadata that was shown.
func (h had) take(r audit.Record) {
	p, release := projectOf(r), refOf(r)
	v, _ := pkgref.ParseVersion(p.Ecosystem, r.InstalledVersion)
	if best, known := h.highest[p]; !known || v.Compare(best) > 0 {
		h.highest[p] = v
	}
	if !slices.Contains(h.releases[p], release) {
		h.releases[p] = append(h.releases[p], release)
	}
	for _, ref := range []pkgref.Ref{p, release} {
		h.words[ref] = r.Seq
		if r.Outcome == audit.Served {
			h.files[ref] = r.Seq
		}
	}
}

// of tells whether anything of a project was had.
func (h had) of(project pkgref.Ref) bool {
	_, known := h.highest[project]
	return known
}

// after tells whether the run got later what a record says that it could not have: a
// file of the release, or of a page and of metadata any of these. An alarm stays one.
func (h had) after(seq uint64, r audit.Record) bool {
	if r.Kind != audit.KindPackage || r.Package == "" || r.Detail[detailAlarm] != "" {
		return false
	}
	if r.File == "" || r.Detail[detailKind] != "" {
		return h.words[refOf(r)] > seq
	}
	return h.files[refOf(r)] > seq
}

// above tells whether something was had of a path above a project's name: then a
// resolver found there what it looked for below.
func (h had) above(p pkgref.Ref) bool {
	for i := len(p.Name) - 1; i > 0; i-- {
		if p.Name[i] == '/' && h.of(pkgref.Ref{Ecosystem: p.Ecosystem, Name: p.Name[:i]}) {
			return true
		}
	}
	return false
}
