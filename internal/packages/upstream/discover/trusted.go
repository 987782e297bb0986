package discover

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
)

// Environment is the one with which the host's clients are asked, and from which proxies, certificates
// and credentials come: without what lies where a sandbox may write, or could.
func Environment(env []string, trees []hostpath.Tree) []string {
	env = executable.Environment(env, trees)
	if home := Value(env, "HOME"); home != "" && Value(env, "NETRC") == "" {
		for _, name := range []string{".netrc", "_netrc"} {
			if _, theirs, err := hostpath.Within(filepath.Join(home, name), trees); theirs || err != nil {
				env = append(slices.Clip(env), "NETRC=/nonexistent/netrc")
			}
		}
	}
	return env
}

// Apart are the clients as they are asked where a sandbox may write to trees, or could: one whose
// program, settings or certificates lie there, or are reached through a link there, is not asked, which is
// fault.ErrForbidden.
func (all Clients) Apart(trees []hostpath.Tree) Clients {
	if len(trees) == 0 {
		return all
	}
	guarded := slices.Clone(all)
	for i, c := range all {
		guarded[i].Ask = func(ctx context.Context, env []string) (Said, error) {
			for _, path := range slices.Concat(Programs(env, c.Programs, c.Places...), c.Files(env)) {
				if err := c.refuseWritable(path, trees); err != nil {
					return Said{}, err
				}
			}
			said, err := c.Ask(ctx, env)
			for _, bundle := range said.Bundles {
				if err == nil {
					err = c.refuseWritable(bundle.Path, trees)
				}
			}
			return said, err
		}
	}
	return guarded
}

// refuseWritable refuses what decides what a client says, and lies where a sandbox could have written it.
func (c Client) refuseWritable(path string, trees []hostpath.Tree) error {
	if !filepath.IsAbs(path) {
		return nil
	}
	tree, theirs, err := hostpath.Within(path, trees)
	switch {
	case err != nil:
		return fault.Wrap(fault.ErrUnavailable, err, "where %s lies can't be looked at", path)
	case theirs:
		return fault.New(fault.ErrForbidden, "%s, by which this host's %s says which %s it uses, is reached under %s, where a sandbox may write, or could; move it out, or name the %s under upstreams in the configuration file", path, c.Name, c.Registry, tree.Path, c.Registry)
	}
	return nil
}
