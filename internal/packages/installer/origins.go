package installer

import (
	"fmt"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// LockFormat reads where a client's lockfile has packages from: a name that it has from another registry than the one that is asked here,
// or from none, becomes no root: somebody else may have that name in the registry here, and would be asked for it.
func LockFormat(name string) manifest.Format {
	return manifest.Format{Name: name, Read: func(w *manifest.Wants, m manifest.Text) error {
		all, err := lockfile.Origins(name, m.Data)
		if err != nil {
			w.Withhold(m.File, 0, "", "it can't be read, so that any name may come from another registry: "+err.Error())
			return nil //nolint:nilerr // it was withheld for that
		}
		others, first := map[string]map[string]bool{}, map[string]int{} // the names of registries, and their lines
		var order []string
		for _, o := range all {
			why := fmt.Sprintf("%s:%d has it from elsewhere than the registry that is asked here", m.File, o.Line)
			if o.Registry == "" {
				w.KeepBy(o.Name, why)
				continue
			}
			if w.AssumesPublic() || w.IsAsked(o.Registry) {
				continue
			}
			w.KeepBy(o.Name, why)
			if others[o.Registry] == nil {
				order, first[o.Registry], others[o.Registry] = append(order, o.Registry), o.Line, map[string]bool{}
			}
			others[o.Registry][o.Name] = true
		}
		for _, registry := range order[:min(len(order), mostRegistries)] {
			w.Elsewhere(m.File, first[registry], lockfile.WithoutAccount(registry), fmt.Sprintf("%d of its names come from here (%s): these names are not allowed, unless something that is allowed requires one; namespaces in the policy keep them from the registry that is asked here", len(others[registry]), w.NotAsked(registry)))
		}
		if more := len(order) - mostRegistries; more > 0 {
			w.Elsewhere(m.File, first[order[mostRegistries]], fmt.Sprintf("%d more addresses", more), "names come from there too, and are not allowed either")
		}
		return nil
	}}
}

// mostRegistries is how many addresses of a lockfile are told: some registries have a layout of their own, so that each tarball's counts.
const mostRegistries = 20
