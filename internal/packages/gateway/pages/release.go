package pages

import (
	"errors"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// latest is the tag that clients take where nothing else is asked for.
const latest = "latest"

// ruleLockfile is policy's rule of releases that a lockfile leaves out.
const ruleLockfile = "packages.lockfile"

// Withheld is a release, or a project, that a run may not have.
type Withheld struct {
	Ref      pkgref.Ref
	Decision policy.Decision
}

// pageRelease is a version of an index, and what was decided about it.
type pageRelease struct {
	pkgref.Version
	shown   bool            // some file of it
	refusal policy.Decision // of a file that is not
}

func newPageRelease(e pkgref.Ecosystem, text string) *pageRelease {
	v, _ := pkgref.ParseVersion(e, text)
	return &pageRelease{Version: v}
}

// releasesOf are a page's releases, the highest first, under the verdicts.
func releasesOf(j Judged) []*pageRelease {
	byText := map[string]*pageRelease{}
	var out []*pageRelease
	for i, f := range j.Index.Files {
		r := byText[f.Version]
		if r == nil {
			r = newPageRelease(j.source.Ecosystem(), f.Version)
			byText[f.Version] = r
			out = append(out, r)
		}
		if d := j.Decision(i); d.Shown() {
			r.shown = true
		} else {
			r.refusal = d
		}
	}
	slices.SortFunc(out, func(a, b *pageRelease) int { return b.CompareSpelled(a.Version) })
	return out
}

// wanted tells whether something that this run may have requires it.
func (r *pageRelease) wanted() bool { return len(r.refusal.WantedBy) > 0 }

// highestWithheld is the highest release that is not shown, one that is
// required or else a stable one if there is any; nil if all are allowed.
func highestWithheld(releases []*pageRelease) *pageRelease {
	var highest *pageRelease
	for _, r := range releases {
		switch {
		case r.shown:
		case r.wanted():
			return r
		case highest == nil || r.Stable() && !highest.Stable():
			highest = r
		}
	}
	return highest
}

// noticeOf is what a client should be shown with a page: the highest withheld
// release, if clients that ask for nothing special would have taken it or one
// like it. A page from which only old releases are withheld gives no notice, and
// what a lockfile leaves out is none: that is what it was given for.
func noticeOf(j Judged) *Withheld {
	releases := slices.DeleteFunc(releasesOf(j), func(r *pageRelease) bool { return !r.shown && r.refusal.Rule == ruleLockfile })
	highest := highestWithheld(releases)
	if highest == nil || !missed(releases, j.Index.Tags[latest]) {
		return nil
	}
	return &Withheld{j.releaseRef(highest.String()), highest.refusal}
}

// missed tells that the release of the tag "latest" is withheld, or the whole
// of the highest line.
func missed(releases []*pageRelease, latest string) bool {
	var line [2]int64
	found, some := false, false
	for _, r := range releases {
		if r.String() == latest && !r.shown {
			return true
		}
		if !r.Stable() {
			continue
		}
		if !found {
			found, line = true, r.Major()
		}
		some = some || r.Major() == line && r.shown
	}
	return found && !some
}

// releaseRef is one of the page's project, as the page spells that.
func (j Judged) releaseRef(version string) pkgref.Ref {
	return pkgref.Ref{Ecosystem: j.source.Ecosystem(), Name: j.Index.Project, Version: version}
}

// instead is what a client gets where the protocol has no document for it, and
// said so with why: the decision on the release that it named, or on the highest
// release if all are withheld; or that there is no such release.
func instead(j Judged, named string, why error) (refused *Withheld, missing error) {
	releases := releasesOf(j)
	version := named
	if tagged, ok := j.Index.Tags[named]; ok {
		version = tagged
	}
	for _, r := range releases {
		if r.String() == version && !r.shown {
			return &Withheld{j.releaseRef(version), r.refusal}, nil
		}
	}
	for _, l := range j.Index.LeftOut {
		if version != "" && l.Version == version {
			return nil, fault.Invalid("%s can't be served: %s", l.Name, l.Reason)
		}
	}
	some := slices.ContainsFunc(releases, func(r *pageRelease) bool { return r.shown })
	if r := highestWithheld(releases); r != nil && !some && errors.Is(why, fault.ErrForbidden) {
		return &Withheld{j.releaseRef(""), r.refusal}, nil
	}
	if named == "" {
		return nil, fault.New(fault.ErrNotFound, "the project has no releases")
	}
	return nil, fault.New(fault.ErrNotFound, "the project has no such release")
}
