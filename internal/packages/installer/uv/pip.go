package uv

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/pip"
)

// uvInstall are the options of `uv pip install`, and compiled those of them that
// `uv pip compile` has as well; the others are about installing.
func uvInstall() (known installer.Options, compiled []string) {
	compiled = []string{
		"-c", "--constraint", "--constraints", "--override", "--overrides", "-i", "--index-url", "--extra-index-url", "--index",
		"--default-index", "-f", "--find-links", "--no-index", "-p", "--python", "--python-version", "--python-platform", "--prerelease", "--pre",
		"--resolution", "--exclude-newer", "-P", "--upgrade-package", "-U", "--upgrade", "--no-binary", "--only-binary", "--no-build",
		"-C", "--config-setting", "--config-settings", "--index-strategy", "--keyring-provider", "--extra", "--all-extras", "--group",
		"--no-deps", "--no-build-isolation", "--no-sources", "-b", "--build-constraint", "--build-constraints", "--fork-strategy",
	}
	known.Values = []string{
		"-c", "--constraint", "--constraints", "--override", "--overrides", "-i", "--index-url", "--extra-index-url", "--index",
		"--default-index", "-f", "--find-links", "-p", "--python", "--python-version", "--python-platform", "--prerelease", "--resolution",
		"--exclude-newer", "-P", "--upgrade-package", "--no-binary", "--only-binary", "-C", "--config-setting", "--config-settings",
		"--index-strategy", "--keyring-provider", "--extra", "--group", "-b", "--build-constraint", "--build-constraints", "--fork-strategy",
		"-r", "--requirement", "--requirements", "-e", "--editable", "--target", "-t", "--prefix", "--link-mode", "--reinstall-package", "--refresh-package",
	}
	known.Flags = []string{
		"--no-index", "--pre", "-U", "--upgrade", "--no-build", "--all-extras", "--no-deps", "--no-build-isolation", "--no-sources",
		"--system", "--break-system-packages", "--user", "--reinstall", "--force-reinstall", "--compile-bytecode", "--compile", "--strict", "--exact",
		"--require-hashes", "--no-verify-hashes", "--dry-run", "-q", "--quiet", "-v", "--verbose", "-n", "--no-cache", "--no-cache-dir", "--refresh",
	}
	return known, compiled
}

// rewritePip resolves with `uv pip compile`, which wants requirements in files.
func rewritePip(words []string, p installer.Project) (installer.Rewrite, bool, error) {
	known, compiled := uvInstall()
	parsed, err := known.Parse("uv pip install", words)
	if err != nil {
		return installer.Rewrite{}, true, err
	}
	var wanted, files, passed []string
	for _, o := range parsed {
		switch {
		case o.Name == "":
			wanted = append(wanted, o.Value)
		case o.Name == "-e" || o.Name == "--editable":
			wanted = append(wanted, "-e "+o.Value)
		case o.Name == "-r" || o.Name == "--requirement" || o.Name == "--requirements":
			files = append(files, o.Value)
		case slices.Contains(compiled, o.Name):
			passed = append(passed, o.Words()...)
		}
	}
	if len(wanted)+len(files) == 0 {
		return installer.Rewrite{}, true, fault.Invalid("uv pip install names no package and no -r file, so there is nothing to plan")
	}
	for _, w := range wanted {
		if strings.ContainsAny(w, "\n\r") {
			return installer.Rewrite{}, true, fault.Invalid("%q is no requirement", text.Shorten(w, installer.MaxQuoted))
		}
	}
	lines := []string{"printf '%s\\n' " + installer.Quoted(wanted) + ` >"$out/wanted.in" || exit`}
	if len(wanted) == 0 {
		lines = []string{`: >"$out/wanted.in"`}
	}
	compile := installer.Quoted(append([]string{"uv", "pip", "compile", "-q", "--generate-hashes", "--no-header", "--no-annotate"}, passed...))
	lines = append(lines,
		compile+` -o "$out/requirements.txt" "$out/wanted.in" `+installer.Quoted(files)+" || exit",
		"emit "+pip.RequirementsFile+` "$out/requirements.txt"`)
	return installer.Rewrite{Resolver: pipResolver(), Argv: p.Script(lines...)}, true, nil
}

// KeepHint implements installer.Keeper: `uv pip` installs where pip does, and the project's commands into the project.
func (client) KeepHint(argv []string, line string, writable []string) string {
	program, words := pip.Module(argv)
	if program != "uv" || len(words) == 0 || words[0] != "pip" || strings.Contains(argv[0], "/") {
		return ""
	}
	return pip.KeepHint(words[1:], line, writable)
}
