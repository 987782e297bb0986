package admission

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// Ancestor is a sandbox of which another is a copy, with its records up to the
// moment of the copy.
type Ancestor struct {
	Sandbox string `json:"sandbox"`
	From    uint64 `json:"from"` // the first of its records
	Upto    uint64 `json:"upto"` // the last one that counts
}

// maxAncestors bounds how often copies of copies can be made: all their records
// are read again when a daemon starts.
const maxAncestors = 64

// Lineage is what the door knows of a sandbox at one moment, for a copy of it.
type Lineage struct {
	// Ancestors are those whose records are the copy's ledger, the oldest first,
	// the sandbox itself last.
	Ancestors []Ancestor
	Facts     *Facts
}

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

// Lineage returns what a copy of the sandbox that is made now begins with. What
// is served while the copy is being written counts for it, too, if this is asked
// for afterwards; asked for before, packages may be missing.
func (c *Controller) Lineage(_ context.Context, sandbox string) (Lineage, error) {
	t, err := c.tenant(sandbox)
	if err != nil {
		return Lineage{}, err
	}
	if t.run.Plan {
		return Lineage{}, fault.New(fault.ErrConflict, "the sandbox %s only weighs installs for a plan; there are no copies of it", sandbox)
	}
	if len(t.run.Ancestors) >= maxAncestors {
		return Lineage{}, fault.New(fault.ErrConflict, "the sandbox %s is a copy of a copy, %d times over; make a template, or install again", sandbox, maxAncestors)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		return Lineage{}, fault.New(fault.ErrConflict, "nothing of the sandbox %s is on record", sandbox)
	}
	own := Ancestor{Sandbox: t.run.Sandbox, From: t.first, Upto: t.last}
	return Lineage{Ancestors: append(slices.Clone(t.run.Ancestors), own), Facts: t.facts()}, nil
}

// facts needs t.mu.
func (t *tenant) facts() *Facts {
	all := map[pkgref.Ref]*ProjectFacts{}
	of := func(project pkgref.Ref) *ProjectFacts {
		if all[project] == nil {
			from := t.origins[project]
			all[project] = &ProjectFacts{Project: project, Upstream: from.upstream, Toolchain: from.toolchain, Releases: map[string]string{}, Weighed: map[string]door.File{}, Own: map[string][]door.Requirement{}}
		}
		return all[project]
	}
	for release, s := range t.releases.All() {
		of(projectOfRef(release)).stand(release.Version, s)
	}
	for project, r := range t.required {
		f := of(project)
		f.Page = r.page()
		for _, version := range r.versions {
			release := project
			release.Version = version
			if own, known := r.own[version]; known && !r.locked { // a copy has the lockfiles, too
				f.Own[version] = own
			}
			f.stand(version, t.releases.Of(release))
		}
	}
	facts := &Facts{}
	for _, f := range all {
		facts.Projects = append(facts.Projects, *f)
	}
	slices.SortFunc(facts.Projects, func(a, b ProjectFacts) int { return compareRefs(a.Project, b.Project) })
	return facts
}

// stand takes where a release stands. What one file of it decided is weighed again by
// the copy's own policy.
func (f *ProjectFacts) stand(version string, s ledger.Standing) {
	switch {
	case s.State == ledger.Unknown:
	case s.State == ledger.Admitted && s.Through != "":
		f.Releases[version] = s.Through
	case s.Facts != nil:
		f.Weighed[version] = fileOfFacts(*s.Facts)
	case s.State == ledger.Admitted, s.Listed:
		f.Releases[version] = ""
	case !slices.Contains(f.Read, version):
		f.Read = append(f.Read, version)
	}
}

// replay gives what stand took to a copy.
func (f *ProjectFacts) replay(to *ledger.Releases) {
	release := f.Project
	for version, through := range f.Releases {
		release.Version = version
		to.Move(release, ledger.Event{Kind: ledger.Listed})
		if through != "" {
			to.Move(release, ledger.Event{Kind: ledger.Allowed, Through: through})
		}
	}
	for version, file := range f.Weighed {
		release.Version = version
		facts := file.Facts()
		to.Move(release, ledger.Event{Kind: ledger.Read, File: facts.File, Facts: &facts})
	}
	for _, version := range f.Read {
		release.Version = version
		to.Move(release, ledger.Event{Kind: ledger.Read})
	}
}

// page gives what a page said as it came.
func (r *requirements) page() []door.IndexRequirement {
	if len(r.list) == 0 {
		return nil
	}
	page := make([]door.IndexRequirement, len(r.list))
	for i, q := range r.list {
		page[i] = door.IndexRequirement{Name: q.Name, Specifier: q.Specifier}
	}
	for _, version := range r.versions {
		for _, i := range r.places[version] {
			page[i].Versions = append(page[i].Versions, version)
		}
	}
	return page
}

// RegisterCopy makes a sandbox known that is a copy of others (Run.Ancestors):
// what was served to them, found on their disks and refused to them is known of
// it as well, and is judged again by its own policy where it is asked for again.
// facts may be nil. fault.ErrUnavailable if the log has not all of their records.
func (c *Controller) RegisterCopy(ctx context.Context, r Run, facts *Facts) error {
	if r.Sandbox == "" || r.Run == "" || r.Policy == nil || len(r.Ancestors) == 0 {
		return fault.Invalid("a copy is registered with its id, its run, its policy and its ancestors; one is missing")
	}
	t := newTenant(r, c.config.Limits, c.remembered)
	if err := c.inherit(ctx, t); err != nil {
		return err
	}
	if !r.Narrowing.IsZero() { // its own counts, and not what its ancestors' records say
		t.narrowing.set(r.Narrowing)
	}
	if err := c.followLock(t); err != nil {
		return err
	}
	if facts != nil {
		if err := c.takeFacts(t, facts); err != nil {
			return err
		}
	}
	return c.add(t)
}

// inherit takes the records of a tenant's ancestors. Nobody else knows it yet.
func (c *Controller) inherit(ctx context.Context, t *tenant) error {
	for _, a := range t.run.Ancestors {
		records, err := c.ledgers.read(ctx, c.config.Log, a)
		if err != nil {
			return err
		}
		t.mu.Lock()
		for _, r := range records {
			t.inherit(r, c.config.Limits)
		}
		t.mu.Unlock()
	}
	return nil
}

// inherit takes one record of an ancestor. Its refusals are only shown: the first
// of the copy itself is on record again. It counts against no quota, but a run
// that was cut stays so. t.mu is held.
func (t *tenant) inherit(r audit.Record, limits Limits) {
	switch r.Kind {
	case audit.KindPackage, audit.KindNetwork:
		t.inheritAsk(r, limits)
	case audit.KindCommand:
		switch r.Outcome { //nolint:exhaustive // how it ended is its sandbox's own
		case audit.Started:
			t.claim(r.Command, limits)
		case audit.Blocked:
			t.showInherited(r, limits)
		}
	case audit.KindSandbox:
		if r.Outcome == audit.Exceeded {
			t.cut, t.cutTold = true, true
		}
		t.narrowing.replay(r)
		t.replayLaw(r)
	case audit.KindDaemon, audit.KindApproval, audit.KindLog, audit.KindBuild:
	}
}

// inheritAsk needs t.mu.
func (t *tenant) inheritAsk(r audit.Record, limits Limits) {
	switch r.Outcome { //nolint:exhaustive // the others are of no ask that a copy has to know
	case audit.Served:
		t.had(r)
		t.serve(r)
	case audit.Installed, audit.Alarm:
		t.accounts.take(r)
	case audit.Blocked, audit.Withheld, audit.Failed, audit.Exceeded, audit.Pending:
		t.accounts.take(r) // of the disk's, too many packages
		if r.Detail[detailEvent] != eventRepeats {
			t.showInherited(r, limits)
		}
	}
}

// showInherited needs t.mu.
func (t *tenant) showInherited(r audit.Record, limits Limits) {
	t.show(&refusal{record: r, count: max(1, r.Count), told: max(1, r.Count), inherited: true}, limits.Refusals)
}

// takeFacts makes edges of what the ancestors' clients have read, by this
// tenant's own policy.
func (c *Controller) takeFacts(t *tenant, facts *Facts) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range facts.Projects {
		t.origins[f.Project] = origin{f.Upstream, f.Toolchain}
		f.replay(t.releases)
		for version, reqs := range f.Own {
			release := f.Project
			release.Version = version
			if err := t.setRelease(release, reqs, c.config.Limits.Requirements); err != nil {
				return err
			}
		}
		if len(f.Page) > 0 {
			if err := t.setPage(f.Project, factsEpoch, f.Page, c.config.Limits.Requirements); err != nil {
				return err
			}
		}
	}
	for _, f := range facts.Projects {
		if err := c.spread(t, f.Project); err != nil {
			return err
		}
	}
	return nil
}
