package admission

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
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

// many tells that requirements of many releases came at once, of a page or a
// lockfile: equal ones are then one edge.
func (r *requirements) many() bool { return r.epoch != "" || r.locked }

// requiredBy returns a project's requirements, made if there are none; t.mu is
// held.
func (t *tenant) requiredBy(project pkgref.Ref) *requirements {
	r := t.required[project]
	if r == nil {
		r = &requirements{places: map[string][]int{}, own: map[string][]door.Requirement{}, met: map[string]bool{}, made: map[string]string{}}
		t.required[project] = r
	}
	return r
}

// takes tells whether a run may have n more requirements, of so many more bytes, and
// counts them; t.mu is held.
func (t *tenant) takes(n, limit int, bytes int64) error {
	if t.requirements+n > limit {
		return fault.New(fault.ErrForbidden, "the releases that this run has seen require more than %d packages, so no more are taken", limit)
	}
	if !t.releases.Take(bytes) {
		return tooMuch(t)
	}
	t.requirements += n
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

// unmet is what meeting these versions takes.
func (r *requirements) unmet(versions ...string) (bytes int64) {
	for _, v := range versions {
		if !r.met[v] {
			bytes += int64(perVersion + len(v))
		}
	}
	return bytes
}

// setRelease takes what the metadata of one release says; t.mu is held.
func (t *tenant) setRelease(p pkgref.Ref, reqs []door.Requirement, limit int) error {
	r := t.requiredBy(projectOfRef(p))
	if old, known := r.own[p.Version]; known && slices.Equal(old, reqs) {
		return nil
	}
	bytes := bytesOf(reqs) - bytesOf(r.own[p.Version]) + r.unmet(p.Version)
	if err := t.takes(len(reqs)-len(r.own[p.Version]), limit, bytes); err != nil {
		return err
	}
	r.meet(p.Version)
	r.own[p.Version] = slices.Clone(reqs)
	delete(r.made, p.Version) // what is new of it becomes edges
	return nil
}

// setPage takes what a page says, in place of what an earlier one said; t.mu is
// held.
func (t *tenant) setPage(project pkgref.Ref, epoch string, reqs []door.IndexRequirement, limit int) error {
	r := t.requiredBy(project)
	var bytes, versions int64
	fresh := map[string]bool{}
	for _, q := range reqs {
		bytes += int64(48 + len(q.Name) + len(q.Specifier) + perPlace*len(q.Versions))
		for _, v := range q.Versions {
			if !fresh[v] {
				fresh[v] = true
				versions += r.unmet(v)
			}
		}
	}
	if err := t.takes(len(reqs)-len(r.list), limit, bytes-r.bytes+versions); err != nil {
		return err
	}
	r.bytes = bytes
	r.epoch, r.list, r.places = epoch, make([]door.Requirement, len(reqs)), map[string][]int{}
	r.made = map[string]string{} // what is new becomes edges
	for i, q := range reqs {
		r.list[i] = door.Requirement{Name: q.Name, Specifier: q.Specifier}
		for _, v := range q.Versions {
			r.meet(v)
			r.places[v] = append(r.places[v], i)
		}
	}
	return nil
}

func (r *requirements) meet(version string) {
	if !r.met[version] {
		r.met[version] = true
		r.versions = append(r.versions, version)
	}
}

// of are the requirements of a release.
func (r *requirements) of(version string) []door.Requirement {
	reqs := slices.Clone(r.own[version])
	for _, place := range r.places[version] {
		reqs = append(reqs, r.list[place])
	}
	return reqs
}

func projectOfRef(p pkgref.Ref) pkgref.Ref {
	p.Version = ""
	return p
}
