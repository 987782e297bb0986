// Package toy is a client of the toy registry: `toy get NAME@VERSION...` fetches, and
// --lock-only writes toy.lock and fetches nothing.
package toy

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// lockName is the lockfile.
const lockName = "toy.lock"

type client struct{}

// New returns the installer.
func New() installer.Installer { return client{} }

func (client) Name() string                { return "toy" }
func (client) Ecosystem() pkgref.Ecosystem { return pkgref.Toy }
func (client) Plannable() []string         { return []string{"toy get"} }

// Asks implements installer.Installer.
func (client) Asks(argv []string) ([]string, bool) {
	if installer.Program(argv) != "toy" {
		return nil, false
	}
	return installer.Behind(argv[1:], "get")
}

// Rewrite implements installer.Installer.
func (client) Rewrite(argv []string, p installer.Project) (installer.Rewrite, bool, error) {
	if installer.Program(argv) != "toy" || len(argv) < 2 || argv[1] != "get" {
		return installer.Rewrite{}, false, nil
	}
	words := installer.Without(argv[2:], []string{"--lock-only"}, nil)
	resolve := installer.Line(append([]string{"toy", "get", "--lock-only"}, words...)...)
	return installer.Rewrite{
		Resolver: installer.Resolver{
			Name: "toy", Ecosystem: pkgref.Toy, Documents: []string{lockName}, LockName: lockName,
			Read: installer.Only(lockName, installer.Locked(lockName)),
		},
		Argv: p.Script(resolve, "emit "+lockName+" "+lockName),
	}, true, nil
}

func (client) Install(wanted []installer.Wanted) []string {
	argv := []string{"toy", "get"}
	for _, w := range wanted {
		argv = append(argv, w.Word("@"))
	}
	return argv
}

func (client) Settings(s installer.Surroundings) map[string]string {
	return map[string]string{"TOY_CERTIFICATES": s.Bundle}
}

func (client) Mirror(r installer.Registry) map[string]string {
	return map[string]string{"TOY_INDEX": r.Index}
}

func (client) Unbuilt() map[string]string { return nil }

// Manifests implements installer.ManifestReader: a project names what it requires in
// toys.list, one on each line.
func (client) Manifests() []manifest.Format {
	return []manifest.Format{{Name: "toys.list", Read: func(w *manifest.Wants, m manifest.Text) error {
		for _, name := range strings.Fields(string(m.Data)) {
			w.Add(name, m.File, 0)
		}
		return nil
	}}}
}
