package plan

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// The names of what comes out of a sandbox, in frames.
const (
	frameReport       = "report.json"      // of pip
	frameRequirements = "requirements.txt" // with hashes, by uv
	frameUVLock       = "uv.lock"
	framePackageLock  = "package-lock.json"
	framePnpmLock     = "pnpm-lock.yaml"
	frameGoSum        = "go.sum"
	frameGoSumBefore  = "go.sum.before" // the project's own, before
	frameDownloads    = "download.json" // of go mod download -json
)

// pip resolves by itself with --dry-run; own is how it is called.
func pip(own, words []string, p Project) (Rewrite, error) {
	words = without(words, []string{"--dry-run"}, []string{"--report"})
	if err := refuseAny("pip install", words, "it asks for help", "-h", "--help"); err != nil {
		return Rewrite{}, err
	}
	line := quoted(append(slices.Clone(own), "install", "--dry-run", "--ignore-installed", "--no-input")) +
		` --report "$out/report.json" ` + quoted(words) + " || exit"
	return Rewrite{Client: Pip, Argv: p.script(line, `emit `+frameReport+` "$out/report.json"`)}, nil
}

// uvInstall are the options of `uv pip install`, and compiled those of them that
// `uv pip compile` has as well; the others are about installing.
func uvInstall() (known options, compiled []string) {
	compiled = []string{
		"-c", "--constraint", "--constraints", "--override", "--overrides", "-i", "--index-url", "--extra-index-url", "--index",
		"--default-index", "-f", "--find-links", "--no-index", "-p", "--python", "--python-version", "--python-platform", "--prerelease", "--pre",
		"--resolution", "--exclude-newer", "-P", "--upgrade-package", "-U", "--upgrade", "--no-binary", "--only-binary", "--no-build",
		"-C", "--config-setting", "--config-settings", "--index-strategy", "--keyring-provider", "--extra", "--all-extras", "--group",
		"--no-deps", "--no-build-isolation", "--no-sources", "-b", "--build-constraint", "--build-constraints", "--fork-strategy",
	}
	known.values = []string{
		"-c", "--constraint", "--constraints", "--override", "--overrides", "-i", "--index-url", "--extra-index-url", "--index",
		"--default-index", "-f", "--find-links", "-p", "--python", "--python-version", "--python-platform", "--prerelease", "--resolution",
		"--exclude-newer", "-P", "--upgrade-package", "--no-binary", "--only-binary", "-C", "--config-setting", "--config-settings",
		"--index-strategy", "--keyring-provider", "--extra", "--group", "-b", "--build-constraint", "--build-constraints", "--fork-strategy",
		"-r", "--requirement", "--requirements", "-e", "--editable", "--target", "-t", "--prefix", "--link-mode", "--reinstall-package", "--refresh-package",
	}
	known.flags = []string{
		"--no-index", "--pre", "-U", "--upgrade", "--no-build", "--all-extras", "--no-deps", "--no-build-isolation", "--no-sources",
		"--system", "--break-system-packages", "--user", "--reinstall", "--force-reinstall", "--compile-bytecode", "--compile", "--strict", "--exact",
		"--require-hashes", "--no-verify-hashes", "--dry-run", "-q", "--quiet", "-v", "--verbose", "-n", "--no-cache", "--no-cache-dir", "--refresh",
	}
	return known, compiled
}

// uvPip resolves with `uv pip compile`, which wants requirements in files.
func uvPip(words []string, p Project) (Rewrite, error) {
	known, compiled := uvInstall()
	parsed, err := known.parse("uv pip install", words)
	if err != nil {
		return Rewrite{}, err
	}
	var wanted, files, passed []string
	for _, o := range parsed {
		switch {
		case o.name == "":
			wanted = append(wanted, o.value)
		case o.name == "-e" || o.name == "--editable":
			wanted = append(wanted, "-e "+o.value)
		case o.name == "-r" || o.name == "--requirement" || o.name == "--requirements":
			files = append(files, o.value)
		case slices.Contains(compiled, o.name):
			passed = append(passed, o.words()...)
		}
	}
	if len(wanted)+len(files) == 0 {
		return Rewrite{}, fault.Invalid("uv pip install names no package and no -r file, so there is nothing to plan")
	}
	for _, w := range wanted {
		if strings.ContainsAny(w, "\n\r") {
			return Rewrite{}, fault.Invalid("%q is no requirement", clip(w))
		}
	}
	lines := []string{"printf '%s\\n' " + quoted(wanted) + ` >"$out/wanted.in" || exit`}
	if len(wanted) == 0 {
		lines = []string{`: >"$out/wanted.in"`}
	}
	compile := quoted(append([]string{"uv", "pip", "compile", "-q", "--generate-hashes", "--no-header", "--no-annotate"}, passed...))
	lines = append(lines,
		compile+` -o "$out/requirements.txt" "$out/wanted.in" `+quoted(files)+" || exit",
		"emit "+frameRequirements+` "$out/requirements.txt"`)
	return Rewrite{Client: UVPip, Argv: p.script(lines...)}, nil
}

// uvGroups are the options that say which part of a uv project is meant, and
// uvLocks those that say how it is resolved.
func uvGroups() options {
	return options{
		values: []string{"--extra", "--no-extra", "--group", "--no-group", "--only-group", "--package", "-p", "--python"},
		flags: []string{
			"--all-extras", "--dev", "--no-dev", "--only-dev", "--all-groups", "--no-default-groups", "--all-packages",
		},
	}
}

func uvLocks() options {
	return options{
		values: []string{
			"-P", "--upgrade-package", "--resolution", "--prerelease", "--exclude-newer", "--index", "--default-index", "-i", "--index-url",
			"--extra-index-url", "-f", "--find-links", "--index-strategy", "--fork-strategy", "--keyring-provider",
		},
		flags: []string{"-U", "--upgrade", "--no-index", "--no-sources", "--no-build", "--no-binary"},
	}
}

// uvProject resolves with `uv lock` or `uv add --no-sync` in the copy. Which of
// the lockfile's releases this machine would install, uv says itself.
func uvProject(word string, words []string, p Project) (Rewrite, error) {
	groups, locks := uvGroups(), uvLocks()
	var exported, locked []string
	frozen := false
	if word == "add" {
		if err := refuseAny("uv add", words, "a script's own requirements are not a project's", "--script"); err != nil {
			return Rewrite{}, err
		}
		locked = without(words, []string{"--frozen", "--no-sync", "--locked"}, nil)
	} else {
		known := options{
			values: slices.Concat(groups.values, locks.values, []string{"--link-mode", "--reinstall-package", "--no-install-package", "--refresh-package"}),
			flags: slices.Concat(groups.flags, locks.flags, []string{
				"--frozen", "--locked", "--check", "--inexact", "--exact", "--no-install-project", "--no-install-workspace", "--no-install-local", "--no-editable",
				"--reinstall", "--active", "--compile-bytecode", "--dry-run", "-q", "--quiet", "-v", "--verbose", "-n", "--no-cache", "--refresh",
			}),
		}
		parsed, err := known.parse("uv "+word, words)
		if err != nil {
			return Rewrite{}, err
		}
		for _, o := range parsed {
			switch {
			case o.name == "":
				return Rewrite{}, fault.Invalid("uv %s %q can't be planned: it takes no packages; uv add does", word, clip(o.value))
			case o.name == "--frozen":
				frozen = true
			case slices.Contains(groups.values, o.name) || slices.Contains(groups.flags, o.name):
				exported = append(exported, o.words()...)
			case slices.Contains(locks.values, o.name) || slices.Contains(locks.flags, o.name) || o.name == "--locked" || o.name == "--check":
				locked = append(locked, o.words()...)
			}
		}
	}
	lines := uvLines(word, frozen, locked, exported)
	if word == "add" && p.Top == "" {
		lines = append([]string{emptyProject}, lines...)
	}
	return Rewrite{Client: UVProject, Argv: p.script(lines...)}, nil
}

// emptyProject stands for a project that only another sandbox has, as emptyModule does.
const emptyProject = "[ -f pyproject.toml ] || uv init -q --bare --no-workspace --name plan-invalid || exit"

func uvLines(word string, frozen bool, locked, exported []string) []string {
	var lines []string
	universal := ""
	switch word {
	case "add":
		lines = append(lines, command(append([]string{"uv", "add", "--no-sync"}, locked...)...))
	case "lock":
		universal = "--universal"
		exported = append(exported, "--all-groups", "--all-extras")
		fallthrough
	default:
		if !frozen {
			lines = append(lines, command(append([]string{"uv", "lock"}, locked...)...))
		}
	}
	export := append([]string{"uv", "export", "-q", "--frozen", "--no-hashes", "--no-header", "--no-annotate", "--no-emit-workspace"}, exported...)
	return append(lines,
		quoted(export)+` >"$out/wanted.in" || exit`,
		// Asks the index for each release, so that the gateway shows it.
		"uv pip compile -q --no-deps --generate-hashes --no-header --no-annotate "+universal+` -o "$out/requirements.txt" "$out/wanted.in" || exit`,
		"emit "+frameRequirements+` "$out/requirements.txt"`,
		"emit "+frameUVLock+" uv.lock")
}
