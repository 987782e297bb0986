// Package pnpm is pnpm, as an installer.
package pnpm

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/npm"
)

// lockName is the lockfile.
const lockName = "pnpm-lock.yaml"

type client struct{}

// New returns the installer.
func New() installer.Installer { return client{} }

func (client) Name() string                { return "pnpm" }
func (client) Ecosystem() pkgref.Ecosystem { return pkgref.Node }
func (client) Plannable() []string         { return []string{"pnpm install", "pnpm add"} }

// Asks implements installer.Installer.
func (client) Asks(argv []string) ([]string, bool) {
	if installer.Program(argv) != "pnpm" {
		return nil, false
	}
	return installer.Behind(argv[1:], "add", "install", "i")
}

// Settings implements installer.Installer: pnpm reads npm's.
func (client) Settings(installer.Surroundings) map[string]string { return nil }

// Mirror implements installer.Installer, as Settings does.
func (client) Mirror(installer.Registry) map[string]string { return nil }

func (client) Unbuilt() map[string]string {
	return map[string]string{"npm_config_ignore_scripts": "true"}
}

func (client) Install([]installer.Wanted) []string { return nil }

// Rewrite implements installer.Installer.
func (client) Rewrite(argv []string, p installer.Project) (installer.Rewrite, bool, error) {
	if installer.Program(argv) != "pnpm" || len(argv) < 2 || !slices.Contains([]string{"install", "i", "add"}, argv[1]) {
		return installer.Rewrite{}, false, nil
	}
	return rewriteInstall(argv[1], argv[2:], p)
}

func resolver() installer.Resolver {
	return installer.Resolver{
		Name: "pnpm", Ecosystem: pkgref.Node, Documents: []string{lockName},
		Read:     installer.Only(lockName, installer.Locked(lockName)),
		LockName: lockName,
		Look:     npm.Look,
	}
}

// rewriteInstall resolves with --lockfile-only.
func rewriteInstall(word string, words []string, p installer.Project) (installer.Rewrite, bool, error) {
	if err := installer.RefuseAny("pnpm "+word, words, "it is not the project's install", "-g", "--global", "-C", "--dir", "--offline"); err != nil {
		return installer.Rewrite{}, true, err
	}
	words = installer.Without(words, []string{"--lockfile-only", "--ignore-scripts", "--no-lockfile", "--frozen-lockfile"}, nil)
	resolve := installer.Line(append([]string{"pnpm", word, "--lockfile-only", "--ignore-scripts", "--no-frozen-lockfile"}, words...)...)
	if word == "add" {
		resolve = installer.Line(append([]string{"pnpm", word, "--lockfile-only", "--ignore-scripts"}, words...)...)
	}
	return installer.Rewrite{Resolver: resolver(), Argv: p.Script("rm -f package-lock.json", resolve, "emit "+lockName+" pnpm-lock.yaml")}, true, nil
}

// ReadsUnasked implements installer.ProjectReader.
func (client) ReadsUnasked([]string) []string { return []string{"package.json"} }
