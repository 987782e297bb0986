package ledger

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// Facts are what no record has: what the metadata requires that a sandbox's
// clients have read. A copy's clients need not read it again. They never change.
type Facts struct {
	Projects []ProjectFacts `json:"projects,omitempty"`
}

// ProjectFacts are a project's.
type ProjectFacts struct {
	Project   pkgref.Ref `json:"project"` // no version
	Upstream  string     `json:"upstream,omitempty"`
	Toolchain bool       `json:"toolchain,omitempty"`
	// Releases were admitted, or listed by a page, by version; with what they were
	// admitted through. Weighed are the files of those releases that have to be weighed
	// again, and Read are those of which only metadata was read.
	Releases map[string]string    `json:"releases,omitempty"`
	Weighed  map[string]door.File `json:"weighed,omitempty"`
	Read     []string             `json:"read,omitempty"`
	// Own are the requirements of releases, by version; Page those of a page.
	Own  map[string][]door.Requirement `json:"own,omitempty"`
	Page []door.IndexRequirement       `json:"page,omitempty"`
}

// factsEpoch is the epoch of a page that a copy's source has read: none that
// an answer has, so a page that is read again counts in its place.
const factsEpoch = "inherited"

// Facts are those of the ledger as it stands.
func (l *Ledger) Facts() *Facts {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[pkgref.Ref]*ProjectFacts{}
	of := func(project pkgref.Ref) *ProjectFacts {
		if all[project] == nil {
			from := l.origins[project]
			all[project] = &ProjectFacts{Project: project, Upstream: from.Upstream, Toolchain: from.Toolchain, Releases: map[string]string{}, Weighed: map[string]door.File{}, Own: map[string][]door.Requirement{}}
		}
		return all[project]
	}
	for release, s := range l.releases.All() {
		of(release.Project()).addStanding(release.Version, s)
	}
	for project, r := range l.required {
		f := of(project)
		f.Page = r.pageRequirements()
		for _, version := range r.versions {
			release := project
			release.Version = version
			if own, known := r.own[version]; known && !r.locked { // a copy has the lockfiles, too
				f.Own[version] = own
			}
			f.addStanding(version, l.releases.Of(release))
		}
	}
	facts := &Facts{}
	for _, f := range all {
		facts.Projects = append(facts.Projects, *f)
	}
	slices.SortFunc(facts.Projects, func(a, b ProjectFacts) int { return a.Project.CompareSpelled(b.Project) })
	return facts
}

// addStanding takes where a release stands. The copy's own policy weighs again what one file of it decided.
func (f *ProjectFacts) addStanding(version string, s Standing) {
	switch {
	case s.State == Unknown:
	case s.State == Admitted && s.Through != "":
		f.Releases[version] = s.Through
	case s.Facts != nil:
		f.Weighed[version] = fileOf(*s.Facts)
	case s.State == Admitted, s.Listed:
		f.Releases[version] = ""
	case !slices.Contains(f.Read, version):
		f.Read = append(f.Read, version)
	}
}

// replayStandings gives what stand took to a copy.
func (f *ProjectFacts) replayStandings(to *Releases) {
	release := f.Project
	for version, through := range f.Releases {
		release.Version = version
		to.Move(release, Event{Kind: Listed})
		if through != "" {
			to.Move(release, Event{Kind: Allowed, Through: through})
		}
	}
	for version, file := range f.Weighed {
		release.Version = version
		facts := file.Facts()
		to.Move(release, Event{Kind: Read, File: facts.File, Facts: &facts})
	}
	for _, version := range f.Read {
		release.Version = version
		to.Move(release, Event{Kind: Read})
	}
}

// pageRequirements gives what a page said as it came.
func (r *requirements) pageRequirements() []door.IndexRequirement {
	if len(r.list) == 0 {
		return nil
	}
	page := make([]door.IndexRequirement, len(r.list))
	for i, q := range r.list {
		page[i] = door.IndexRequirement{Name: q.Name, Specifier: q.Specifier, Optional: q.Optional}
	}
	for _, version := range r.versions {
		for _, i := range r.places[version] {
			page[i].Versions = append(page[i].Versions, version)
		}
	}
	return page
}

// Inherit makes edges of what the clients of others have read, by this run's own rules.
func (l *Ledger) Inherit(facts *Facts) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range facts.Projects {
		l.origins[f.Project] = Origin{f.Upstream, f.Toolchain}
		f.replayStandings(l.releases)
		for version, reqs := range f.Own {
			release := f.Project
			release.Version = version
			if err := l.setRelease(release, reqs); err != nil {
				return err
			}
		}
		if len(f.Page) > 0 {
			if err := l.setPage(f.Project, factsEpoch, f.Page); err != nil {
				return err
			}
		}
	}
	for _, f := range facts.Projects {
		if err := l.spread(f.Project); err != nil {
			return err
		}
	}
	return nil
}

// fileOf is a file by what policy weighed of it.
func fileOf(f policy.FileFacts) door.File {
	return door.File{
		Name: f.File, Version: f.Version, Kind: f.Kind, Digest: f.Digest,
		Published: f.Published, FirstSeen: f.FirstSeen, Scripts: f.Scripts, PartOf: f.PartOf,
	}
}
