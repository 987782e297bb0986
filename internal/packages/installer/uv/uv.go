// Package uv is uv, as an installer of two kinds: `uv pip`, which is pip's way, and uv's
// own projects.
package uv

import (
	"slices"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/pip"
)

// lockName is a project's lockfile.
const lockName = "uv.lock"

type client struct{}

// New returns the installer.
func New() installer.Installer { return client{} }

func (client) Name() string                { return "uv" }
func (client) Ecosystem() pkgref.Ecosystem { return pkgref.Python }
func (client) Plannable() []string {
	return []string{"uv pip install", "uv add", "uv sync", "uv lock"}
}

// Asks implements installer.Installer.
func (client) Asks(argv []string) ([]string, bool) {
	program, words := pip.Module(argv)
	switch {
	case program != "uv":
		return nil, false
	case len(words) > 0 && words[0] == "pip":
		return pip.Installed(words[1:])
	}
	return installer.Behind(words, "add")
}

func (client) Settings(s installer.Surroundings) map[string]string {
	return map[string]string{
		"UV_HTTP_TIMEOUT":          strconv.Itoa(s.Timeout),
		"UV_HTTP_RETRIES":          "1", // a refusal is one
		"UV_PYTHON_INSTALL_MIRROR": s.Downloads + "python",
		"UV_PYPY_INSTALL_MIRROR":   s.Downloads + "python",
	}
}

func (client) Mirror(r installer.Registry) map[string]string {
	if r.BuiltIn {
		return nil
	}
	return map[string]string{"UV_DEFAULT_INDEX": r.Index}
}

func (client) Unbuilt() map[string]string { return map[string]string{"UV_NO_BUILD": "1"} }

func (client) Install([]installer.Wanted) []string { return nil }

// Rewrite implements installer.Installer.
func (client) Rewrite(argv []string, p installer.Project) (installer.Rewrite, bool, error) {
	if installer.Program(argv) != "uv" || len(argv) < 2 {
		return installer.Rewrite{}, false, nil
	}
	word, words := argv[1], argv[2:]
	switch {
	case word == "pip" && len(words) > 0 && words[0] == "install":
		return rewritePip(words[1:], p)
	case slices.Contains([]string{"add", "sync", "lock"}, word):
		return uvProject(word, words, p)
	}
	return installer.Rewrite{}, false, nil
}

// pipResolver reads what `uv pip compile` leaves: requirements with hashes, which are the
// lockfile as well.
func pipResolver() installer.Resolver {
	return installer.Resolver{
		Name: "uv pip", Ecosystem: pkgref.Python, Documents: []string{pip.RequirementsFile},
		Read:     installer.Only(pip.RequirementsFile, installer.Locked(pip.RequirementsFile)),
		LockName: pip.RequirementsFile, LockFits: pip.IsRequirements, LockRule: "requirements with hashes, whose name ends in .txt",
		Look: pip.Look,
	}
}

// projectResolver reads what of a project's lockfile this machine would install.
func projectResolver() installer.Resolver {
	r := pipResolver()
	r.Name, r.LockName, r.LockFits, r.LockRule = "uv", lockName, nil, ""
	r.Documents = []string{pip.RequirementsFile, lockName}
	return r
}

// ReadsUnasked implements installer.ProjectReader: the commands of uv pip are of an environment, others may be of a project.
func (client) ReadsUnasked(argv []string) []string {
	if slices.Contains(argv, "pip") {
		return nil
	}
	return []string{"pyproject.toml"}
}
