package mountpolicy

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// coverOwn returns the read-only mounts that keep the agent from replacing Cofferdam's own programs,
// where these lie under a read-write mount: a project's virtual environment may have them. The directory
// below which they lie is covered whole, directly in the mount, so that nothing on the way can be
// renamed: a name on which something is mounted can't be. There is no such directory where the mount
// itself is, or lies in, what has them, and that mount is refused.
func coverOwn(mounts []Checked, own []string) (covers []engine.Mount, err error) {
	asked := mounts
	mounts = slices.DeleteFunc(slices.Clone(mounts), func(m Checked) bool { return !m.ReadWrite })
	if len(mounts) == 0 || len(own) == 0 {
		return nil, nil
	}
	table, err := hostpath.ReadTable()
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the host's table of mounts can't be read")
	}
	for _, program := range own {
		resolved, links, err := hostpath.Links(program)
		if err != nil {
			continue // it is not there, and is not taken from where a sandbox could write
		}
		for _, m := range mounts {
			for _, name := range links {
				if _, below := table.NameUnder(name, m.Source); below {
					return nil, refuseOwn(program, m.Source)
				}
			}
			if _, inside := table.NameUnder(m.Source, resolved); inside {
				return nil, refuseOwn(program, m.Source)
			}
			for _, name := range table.NamesUnder(resolved, m.Source) {
				cover, err := coverOf(m, name)
				if err != nil {
					return nil, err
				}
				if !slices.Contains(covers, cover) && !askedAt(asked, cover) {
					covers = append(covers, cover)
				}
			}
		}
	}
	return covers, nil
}

// coverOf lies over what is directly in a mount and has a name below it, or is of that name.
func coverOf(m Checked, name string) (engine.Mount, error) {
	first, _, _ := strings.Cut(strings.TrimPrefix(name, m.Source+"/"), "/")
	over, err := m.path.Below(first, hostpath.Identity{})
	if err != nil {
		return engine.Mount{}, fault.New(fault.ErrConflict, "%s was moved while it was looked at; try again", filepath.Join(m.Source, first))
	}
	defer over.Close()
	mark, err := over.Mark()
	if err != nil {
		return engine.Mount{}, fault.Wrap(fault.ErrUnavailable, err, "%s can't be looked at", over.Name)
	}
	return engine.Mount{
		Source: over.Name, Destination: filepath.Join(m.Destination, first), ReadOnly: true,
		Origin: over.ID.Kind(), // an installation may be replaced as long as the sandbox lives
		Covers: mark,           // and then it is not believed any more
	}, nil
}

// askedAt tells whether somebody asked for another path of the host where a cover would lie. That lies over
// the same, and is what is to be seen there.
func askedAt(mounts []Checked, cover engine.Mount) bool {
	return slices.ContainsFunc(mounts, func(m Checked) bool { return m.Destination == cover.Destination && m.Source != cover.Source })
}

func refuseOwn(program, source string) error {
	return fault.Invalid("%s, from which Cofferdam itself runs, is reached under the read-write mount %s, where an agent could replace it; mount that directory read-only, or install Cofferdam elsewhere, as with `uv tool install` or `pipx install`", program, source)
}
