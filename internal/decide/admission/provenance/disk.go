package provenance

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// Disk is what the guest says is on its disk, and what was there before.
type Disk struct {
	Found    channel.Inventory
	Template channel.Inventory // what the template brings
	// Before lay on the writable mounts before the first command. Mounts are
	// their directories.
	Before channel.Inventory
	Mounts []string
	// Contents asks the guest about directories; nil: it can't be asked.
	Contents Contents
}

// Contents asks a guest what directories consist of: by path, the digests that the
// package there has. It has none if it can't be compared.
type Contents func(ctx context.Context, paths []string) (map[string][]string, error)

// item is a package of an inventory under its release's one key.
type item struct {
	channel.InstalledPackage
	ref     pkgref.Ref
	release pkgref.Ref
}

func itemOf(p channel.InstalledPackage) item {
	ref := installedRef(p)
	return item{p, ref, ref.Release()}
}

// placed is a release where it lies.
type placed struct {
	release pkgref.Ref
	path    string
}

// sorting is a disk whose packages are sorted by whether they were there before.
type sorting struct {
	policy    *policy.Policy
	found     []item // what was not there before
	kept      []item // what was, at the same place
	template  map[pkgref.Ref]bool
	projects  map[pkgref.Ref]bool // written on a mount before the first command
	local     map[pkgref.Ref]bool // releases that were installed from a project of the sandbox
	builds    map[placed]bool     // what clients keep, and tools leave, of what they build of one
	uncertain []string            // mounts that were not listed whole
}

func sortOut(disk Disk, p *policy.Policy) *sorting {
	s := &sorting{policy: p, template: map[pkgref.Ref]bool{}, projects: map[pkgref.Ref]bool{}, local: map[pkgref.Ref]bool{}, builds: map[placed]bool{}}
	before := map[placed]bool{}
	for _, p := range disk.Template.Packages {
		item := itemOf(p)
		before[placed{item.release, p.Path}] = true
		if !p.Source {
			s.template[item.release] = true
		}
	}
	for _, p := range disk.Before.Packages {
		item := itemOf(p)
		if p.Source && p.Name != "" {
			s.projects[item.release.Project()] = true
		} else if !p.Source {
			before[placed{item.release, p.Path}] = true
		}
	}
	if disk.Before.Truncated {
		s.uncertain = disk.Mounts
	}
	s.sortFound(disk.Found.Packages, before)
	return s
}

// sortFound sorts what is found into packages that were not there before and the
// projects of the sandbox, from which some of them come.
func (s *sorting) sortFound(found []channel.InstalledPackage, before map[placed]bool) {
	w := newWorkshop()
	for _, p := range found {
		item := itemOf(p)
		switch {
		case p.Source:
			w.writes(item)
		case before[placed{item.release, p.Path}]:
			s.kept = append(s.kept, item)
		default:
			s.found = append(s.found, item)
		}
	}
	for _, item := range s.found {
		if w.isFromProject(item) {
			s.local[item.release] = true
			w.gives[item.release.Project()] = true
		}
	}
	for _, item := range s.found {
		if w.leaves(item) {
			s.builds[placed{item.release, item.Path}] = true
		}
	}
}

// isLocal: a name that the policy's lists have means the package of a registry,
// unless a project of that name was there from the first.
func (s *sorting) isLocal(p item) bool {
	project := p.release.Project()
	return s.projects[project] || (s.local[p.release] || s.builds[placed{p.release, p.Path}]) && !s.policy.Lists(project)
}

// isUncertain: what lies on a mount that was not listed whole may have been
// there before.
func (s *sorting) isUncertain(p item) bool {
	for _, mount := range s.uncertain {
		if p.Path == mount || len(p.Path) > len(mount) && p.Path[:len(mount)] == mount && p.Path[len(mount)] == '/' {
			return true
		}
	}
	return false
}

// installedRef names an installed release: canonically if it can be.
func installedRef(p channel.InstalledPackage) pkgref.Ref {
	ref, err := pkgref.New(pkgref.Ecosystem(p.Ecosystem), p.Name, p.Version)
	if err != nil {
		ref = pkgref.Ref{Ecosystem: pkgref.Ecosystem(redact.Cut(p.Ecosystem, 32)), Name: redact.Cut(p.Name, 256), Version: redact.Cut(p.Version, 256)}
	}
	return ref
}
