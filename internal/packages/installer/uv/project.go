package uv

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/pip"
)

// uvGroups are the options that say which part of a uv project is meant, and
// uvLocks those that say how it is resolved.
func uvGroups() installer.Options {
	return installer.Options{
		Values: []string{"--extra", "--no-extra", "--group", "--no-group", "--only-group", "--package", "-p", "--python"},
		Flags: []string{
			"--all-extras", "--dev", "--no-dev", "--only-dev", "--all-groups", "--no-default-groups", "--all-packages",
		},
	}
}

func uvLocks() installer.Options {
	return installer.Options{
		Values: []string{
			"-P", "--upgrade-package", "--resolution", "--prerelease", "--exclude-newer", "--index", "--default-index", "-i", "--index-url",
			"--extra-index-url", "-f", "--find-links", "--index-strategy", "--fork-strategy", "--keyring-provider",
		},
		Flags: []string{"-U", "--upgrade", "--no-index", "--no-sources", "--no-build", "--no-binary"},
	}
}

// uvProject resolves with `uv lock` or `uv add --no-sync` in the copy. Which of
// the lockfile's releases this machine would install, uv says itself.
func uvProject(word string, words []string, p installer.Project) (installer.Rewrite, bool, error) {
	groups, locks := uvGroups(), uvLocks()
	var exported, locked []string
	frozen := false
	if word == "add" {
		if err := installer.RefuseAny("uv add", words, "a script's own requirements are not a project's", "--script"); err != nil {
			return installer.Rewrite{}, true, err
		}
		locked = installer.Without(words, []string{"--frozen", "--no-sync", "--locked"}, nil)
	} else {
		known := installer.Options{
			Values: slices.Concat(groups.Values, locks.Values, []string{"--link-mode", "--reinstall-package", "--no-install-package", "--refresh-package"}),
			Flags: slices.Concat(groups.Flags, locks.Flags, []string{
				"--frozen", "--locked", "--check", "--inexact", "--exact", "--no-install-project", "--no-install-workspace", "--no-install-local", "--no-editable",
				"--reinstall", "--active", "--compile-bytecode", "--dry-run", "-q", "--quiet", "-v", "--verbose", "-n", "--no-cache", "--refresh",
			}),
		}
		parsed, err := known.Parse("uv "+word, words)
		if err != nil {
			return installer.Rewrite{}, true, err
		}
		for _, o := range parsed {
			switch {
			case o.Name == "":
				return installer.Rewrite{}, true, fault.Invalid("uv %s %q can't be planned: it takes no packages; uv add does", word, text.Shorten(o.Value, installer.MaxQuoted))
			case o.Name == "--frozen":
				frozen = true
			case slices.Contains(groups.Values, o.Name) || slices.Contains(groups.Flags, o.Name):
				exported = append(exported, o.Words()...)
			case slices.Contains(locks.Values, o.Name) || slices.Contains(locks.Flags, o.Name) || o.Name == "--locked" || o.Name == "--check":
				locked = append(locked, o.Words()...)
			}
		}
	}
	lines := uvLines(word, frozen, locked, exported)
	if word == "add" && p.Top == "" {
		lines = append([]string{emptyProject}, lines...)
	}
	return installer.Rewrite{Resolver: projectResolver(), Argv: p.Script(lines...)}, true, nil
}

// emptyProject stands for a project that only another sandbox has: what it requires is not known, and what is asked for can be resolved all the same.
const emptyProject = "[ -f pyproject.toml ] || uv init -q --bare --no-workspace --name plan-invalid || exit"

func uvLines(word string, frozen bool, locked, exported []string) []string {
	var lines []string
	universal := ""
	switch word {
	case "add":
		lines = append(lines, installer.Line(append([]string{"uv", "add", "--no-sync"}, locked...)...))
	case "lock":
		universal = "--universal"
		exported = append(exported, "--all-groups", "--all-extras")
		fallthrough
	default:
		if !frozen {
			lines = append(lines, installer.Line(append([]string{"uv", "lock"}, locked...)...))
		}
	}
	export := append([]string{"uv", "export", "-q", "--frozen", "--no-hashes", "--no-header", "--no-annotate", "--no-emit-workspace"}, exported...)
	return append(lines,
		installer.Quoted(export)+` >"$out/wanted.in" || exit`,
		// Asks the index for each release, so that the gateway shows it.
		"uv pip compile -q --no-deps --generate-hashes --no-header --no-annotate "+universal+` -o "$out/requirements.txt" "$out/wanted.in" || exit`,
		"emit "+pip.RequirementsFile+` "$out/requirements.txt"`,
		"emit "+lockName+" uv.lock")
}
