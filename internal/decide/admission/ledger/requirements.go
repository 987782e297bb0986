package ledger

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// requirements are what releases of one project are known to require, whether
// or not these are admitted (yet).
type requirements struct {
	epoch    string             // of the answer about the page that list was read from; "": no page was read
	list     []door.Requirement // of all releases on the page
	bytes    int64              // that these take, with their places
	places   map[string][]int   // by version, in list
	own      map[string][]door.Requirement
	locked   bool     // a lockfile told some of own
	versions []string // with requirements of either kind, in the order in which they came
	met      map[string]bool
	made     map[string]string // by version, whose requirements are edges: through what
}

// Require takes what the verified metadata of a release requires. The release must be
// one that was admitted in this run, or that waits for a person: what it requires counts
// through the entry that admitted it, and only tells who wants what while it waits.
func (l *Ledger) Require(parent pkgref.Ref, reqs []door.Requirement) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.releases.Of(parent).State; s == Unknown || s == Refused {
		return fault.New(fault.ErrForbidden, "%s was not admitted in this run, so what it requires is not taken", parent)
	}
	if err := l.setRelease(parent, reqs); err != nil {
		return err
	}
	return l.spread(parent.Project())
}

// RequirePage takes what a page says that its releases require. It must be the one that
// the project was shown by last.
func (l *Ledger) RequirePage(project pkgref.Ref, digest string, reqs []door.IndexRequirement) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	page := l.releases.Page(project)
	if page == nil || page.Digest() != digest {
		return fault.New(fault.ErrForbidden, "this page of %s was not judged in this run, so what its releases require is not taken", project)
	}
	if err := l.setPage(project, page.Epoch(), reqs); err != nil {
		return err
	}
	return l.spread(project)
}

// Requirements are those of a release, as far as they are known. Of these, Under is left in those alone that only an
// extra brings for which nothing here has asked.
func (l *Ledger) Requirements(release pkgref.Ref) []door.Requirement {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.required[release.Project()]
	if r == nil {
		return nil
	}
	all := slices.Clone(r.requirementsOf(release.Version))
	for i, q := range all {
		if l.counts(release.Project(), q) {
			all[i].Under = ""
		}
	}
	return all
}

// hasMany tells that requirements of many releases came at once, of a page or a
// lockfile: equal ones are then one edge.
func (r *requirements) hasMany() bool { return r.epoch != "" || r.locked }

// requiredBy returns a project's requirements, made if there are none; mu is held.
func (l *Ledger) requiredBy(project pkgref.Ref) *requirements {
	r := l.required[project]
	if r == nil {
		r = &requirements{places: map[string][]int{}, own: map[string][]door.Requirement{}, met: map[string]bool{}, made: map[string]string{}}
		l.required[project] = r
	}
	return r
}

// reserveRequirements counts n more requirements, of so many more bytes, or refuses them; mu is held.
func (l *Ledger) reserveRequirements(n int, bytes int64) error {
	if l.count+n > l.limits.Requirements {
		return fault.New(fault.ErrForbidden, "the releases that this run has seen require more than %d packages, so no more are taken", l.limits.Requirements)
	}
	if !l.releases.Take(bytes) {
		return l.tooMuch()
	}
	l.count += n
	return nil
}

// bytesOf is about what requirements take in memory; what a version takes that is met
// is perVersion, and what one requirement of it that a page lists is perPlace.
func bytesOf(reqs []door.Requirement) (bytes int64) {
	for _, q := range reqs {
		bytes += int64(48 + len(q.Name) + len(q.Specifier) + len(q.Under) + len(q.Asks))
	}
	return bytes
}

const (
	perVersion = 150
	perPlace   = 8
)

// unmetBytes is what meeting these versions takes.
func (r *requirements) unmetBytes(versions ...string) (bytes int64) {
	for _, v := range versions {
		if !r.met[v] {
			bytes += int64(perVersion + len(v))
		}
	}
	return bytes
}

// setRelease takes what the metadata of one release says; mu is held.
func (l *Ledger) setRelease(p pkgref.Ref, reqs []door.Requirement) error {
	r := l.requiredBy(p.Project())
	if old, known := r.own[p.Version]; known && slices.Equal(old, reqs) {
		return nil
	}
	bytes := bytesOf(reqs) - bytesOf(r.own[p.Version]) + r.unmetBytes(p.Version)
	if err := l.reserveRequirements(len(reqs)-len(r.own[p.Version]), bytes); err != nil {
		return err
	}
	r.meetVersion(p.Version)
	r.own[p.Version] = slices.Clone(reqs)
	delete(r.made, p.Version) // what is new of it becomes edges
	return nil
}

// setPage takes what a page says, in place of what an earlier one said; mu is held.
func (l *Ledger) setPage(project pkgref.Ref, epoch string, reqs []door.IndexRequirement) error {
	r := l.requiredBy(project)
	var bytes, versions int64
	fresh := map[string]bool{}
	for _, q := range reqs {
		bytes += int64(48 + len(q.Name) + len(q.Specifier) + perPlace*len(q.Versions))
		for _, v := range q.Versions {
			if !fresh[v] {
				fresh[v] = true
				versions += r.unmetBytes(v)
			}
		}
	}
	if err := l.reserveRequirements(len(reqs)-len(r.list), bytes-r.bytes+versions); err != nil {
		return err
	}
	r.bytes = bytes
	r.epoch, r.list, r.places = epoch, make([]door.Requirement, len(reqs)), map[string][]int{}
	r.made = map[string]string{} // what is new becomes edges
	for i, q := range reqs {
		r.list[i] = door.Requirement{Name: q.Name, Specifier: q.Specifier, Optional: q.Optional}
		for _, v := range q.Versions {
			r.meetVersion(v)
			r.places[v] = append(r.places[v], i)
		}
	}
	return nil
}

func (r *requirements) meetVersion(version string) {
	if !r.met[version] {
		r.met[version] = true
		r.versions = append(r.versions, version)
	}
}

// requires tells whether a release requires a name in some version.
func (r *requirements) requires(version, name string) bool {
	of := func(q door.Requirement) bool { return q.Name == name }
	return slices.ContainsFunc(r.own[version], of) ||
		slices.ContainsFunc(r.places[version], func(place int) bool { return of(r.list[place]) })
}

// resetExtras has edges made again of the releases that require something for an extra.
func (r *requirements) resetExtras() {
	under := func(q door.Requirement) bool { return q.Under != "" }
	for version, own := range r.own {
		if slices.ContainsFunc(own, under) {
			delete(r.made, version)
		}
	}
}

// requirementsOf are the requirements of a release.
func (r *requirements) requirementsOf(version string) []door.Requirement {
	reqs := slices.Clone(r.own[version])
	for _, place := range r.places[version] {
		reqs = append(reqs, r.list[place])
	}
	return reqs
}
