// Package npm is npm, as an installer.
package npm

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// packageLock is the lockfile.
const packageLock = "package-lock.json"

type client struct{}

// New returns the installer.
func New() installer.Installer { return client{} }

func (client) Name() string                { return "npm" }
func (client) Ecosystem() pkgref.Ecosystem { return pkgref.Node }
func (client) Plannable() []string         { return []string{"npm install", "npm ci"} }

// Asks implements installer.Installer, also for the registry's clients that have no folder
// here.
func (client) Asks(argv []string) ([]string, bool) {
	switch installer.Program(argv) {
	case "npm":
		return installer.Behind(argv[1:], "install", "i", "add")
	case "yarn":
		return installer.Behind(argv[1:], "add")
	case "bun":
		return installer.Behind(argv[1:], "add", "install", "i")
	}
	return nil, false
}

// Settings implements installer.Installer, also for the registry's clients that have no
// folder here. npm warns of settings that it does not know, so that only variables of other
// names are used for downloads.
func (client) Settings(s installer.Surroundings) map[string]string {
	timeout := strconv.Itoa(s.Timeout) + "000" // milliseconds
	return map[string]string{
		"npm_config_cafile":        s.Bundle, // with it npm ignores NODE_EXTRA_CA_CERTS
		"npm_config_fetch_timeout": timeout,
		"npm_config_fetch_retries": "1", // a refusal is one
		// A name that is none is asked for again at once, not after ten seconds.
		"npm_config_fetch_retry_mintimeout":   "100",
		"npm_config_audit":                    "false",
		"npm_config_fund":                     "false",
		"npm_config_update_notifier":          "false", // pnpm's, too
		"npm_package_config_node_gyp_disturl": s.Downloads + "node-headers",
		"COREPACK_ENABLE_DOWNLOAD_PROMPT":     "0",
		"YARN_HTTP_TIMEOUT":                   timeout,
		"YARN_ENABLE_TELEMETRY":               "0",
	}
}

// Mirror implements installer.Installer, as Settings does.
func (client) Mirror(r installer.Registry) map[string]string {
	if r.BuiltIn {
		return nil
	}
	bare := strings.TrimSuffix(r.Index, "/")
	return map[string]string{
		"npm_config_registry": r.Index, "COREPACK_NPM_REGISTRY": bare, "YARN_NPM_REGISTRY_SERVER": bare, "BUN_CONFIG_REGISTRY": r.Index,
	}
}

func (client) Unbuilt() map[string]string {
	return map[string]string{"npm_config_ignore_scripts": "true"}
}

func (client) Install(wanted []installer.Wanted) []string {
	argv := []string{"npm", "install"}
	for _, w := range wanted {
		argv = append(argv, w.Word("@"))
	}
	return argv
}

// Rewrite implements installer.Installer.
func (client) Rewrite(argv []string, p installer.Project) (installer.Rewrite, bool, error) {
	if installer.Program(argv) != "npm" || len(argv) < 2 {
		return installer.Rewrite{}, false, nil
	}
	switch word := argv[1]; {
	case slices.Contains([]string{"install", "i", "add"}, word):
		return rewriteInstall(argv[2:], p)
	case word == "ci":
		return cleanInstall(argv[2:], p)
	}
	return installer.Rewrite{}, false, nil
}

func resolver() installer.Resolver {
	return installer.Resolver{
		Name: "npm", Ecosystem: pkgref.Node, Documents: []string{packageLock},
		Read:     installer.Only(packageLock, readLock),
		LockName: packageLock, LockFits: func(base string) bool { return base == "npm-shrinkwrap.json" },
		Look: Look,
	}
}

// rewriteInstall resolves with --package-lock-only. The lockfile has no registry's host.
func rewriteInstall(words []string, p installer.Project) (installer.Rewrite, bool, error) {
	if err := installer.RefuseAny("npm install", words, "the project's folder can't be another one", "--prefix", "-C"); err != nil {
		return installer.Rewrite{}, true, err
	}
	words = installer.Without(words,
		[]string{"-g", "--global", "--no-package-lock", "--dry-run", "--ignore-scripts", "--package-lock-only"}, []string{"--location", "--package-lock"})
	own := []string{"npm", "install", "--package-lock-only", "--ignore-scripts", "--omit-lockfile-registry-resolved"}
	return installer.Rewrite{Resolver: resolver(), Argv: p.Script(append([]string{installer.Line(append(own, words...)...)}, emittingLines()...)...)}, true, nil
}

// emittingLines are the lines that put out what the resolver left.
func emittingLines() []string {
	return []string{
		"[ -f npm-shrinkwrap.json ] && mv npm-shrinkwrap.json package-lock.json",
		"emit " + packageLock + " package-lock.json",
	}
}

// cleanInstall plans `npm ci`, which has nothing to resolve: its plan is the lockfile.
func cleanInstall(words []string, p installer.Project) (installer.Rewrite, bool, error) {
	for _, w := range words {
		if len(w) == 0 || w[0] != '-' {
			return installer.Rewrite{}, true, fault.Invalid("npm ci takes no packages; %q can't be planned", text.Shorten(w, installer.MaxQuoted))
		}
	}
	check := `[ -f npm-shrinkwrap.json ] || [ -f package-lock.json ] || { echo "npm ci needs a package-lock.json" >&2; exit 1; }`
	return installer.Rewrite{Resolver: resolver(), Argv: p.Script(append([]string{check}, emittingLines()...)...)}, true, nil
}

// ReadsUnasked implements installer.ProjectReader.
func (client) ReadsUnasked([]string) []string { return []string{"package.json"} }
