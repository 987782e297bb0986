package pip

import (
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// RegistryFiles implements installer.RegistryNamer: those of PDM, Poetry and pixi, lockfiles, and pip's own, of which those of an environment hold.
func (client) RegistryFiles() []manifest.Format {
	all := []manifest.Format{tomlFormat("pdm.toml"), tomlFormat(".pdm.toml"), tomlFormat("poetry.toml"), tomlFormat("pixi.toml")}
	for _, dir := range []string{"", ".venv/", "venv/", "env/"} {
		all = append(all, pipFormat(dir+"pip.conf"), pipFormat(dir+"pip.ini"))
	}
	for _, lock := range []string{"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml"} {
		all = append(all, installer.LockFormat(lock))
	}
	return all
}

func tomlFormat(name string) manifest.Format {
	return manifest.Format{Name: name, Read: func(w *manifest.Wants, m manifest.Text) error {
		return indexes{w, m}.readFile(name)
	}}
}

func pipFormat(name string) manifest.Format {
	return manifest.Format{Name: name, Read: func(w *manifest.Wants, m manifest.Text) error {
		for _, o := range optionsIn(m) {
			o.registry(w, m)
		}
		return nil
	}}
}

// RegistrySign implements installer.RegistryNamer.
func (client) RegistrySign() manifest.Sign { return signOfCommand }

// signOfCommand finds by which a line has a client ask another registry. curl's short options are none: pip's of these letters follow
// no name of a program, except in a command of pip's own.
func signOfCommand(line string) string {
	if found := pipCommand.FindString(line); found != "" {
		return found
	}
	return commands.FindString(curl.ReplaceAllString(line, "$1"))
}

// curl begins a command of its own, whose short options follow, as the checks of containers have it: curl -f http://localhost, and
// ["CMD", "curl", "-f", ...]. Behind anything else it may be the name of a package.
var curl = regexp.MustCompile(`((?:^\s*|[&|;@]\s*|\[\s*["']|\$\(|\btest:\s*["']?|\b(?:RUN|CMD|CMD-SHELL)["']?[\s,]+["']?)curl["']?)(?:[\s,]+["']?-[A-Za-z]+\b["']?)+`)

// commands are found in files with commands, beside signs: pip, PDM, Poetry and others set a registry by commands, or by a file that is
// written there, and pip's short options may have any value. In files of the tools' own, such keys are compared.
var commands = regexp.MustCompile(signs.String() + "|" + strings.Join([]string{
	`(?-i:(?:index[-_]urls?|find[-_]links)(?:[^\w-]|$))`, `\bpypi\.[\w.-]*url\b`, `\bpoetry\s+source\s+add\b`, `\bcodeartifact\s+login\b`,
	`["'](?-i:-[if])["']\s*,`,
	`\buv\s+(?:(?:sync|lock|add|export|tree|pip)\b[^&|;]*?)?--config-file\b`,
}, "|"))

// pipCommand is one of pip's, or of those that take its options, with a short option that may have any value.
var pipCommand = regexp.MustCompile(`(?i)\bpip(?:[0-9.]*\s+(?:install|download|wheel|compile|sync)|-compile|-sync)\b[^&|;]*?\s(?-i:-[if])`)

// signs are the variables of pip, uv, PDM and Pipenv, and the options of their commands.
var signs = regexp.MustCompile(strings.Join([]string{
	`(?i)\b(?:PIP|UV|PDM|PIPENV)_(?:[A-Z0-9]+_)*(?:INDEX|INDEXES|LINKS|PYPI|CONFIG_FILE)(?:_[A-Z0-9]+)*\b`, `\bPOETRY_(?:[A-Z0-9]+_)*MIRROR(?:_[A-Z0-9]+)*\b`,
	`--(?:(?:extra-|default-)?index(?:-(?:u(?:rl?)?)?)?|find-links|pypi-(?:url|mirror)|no-index)(?:[^\w-]|$)`, `\bindexserver\b`,
	`(?:^|[\s"'\[,(])-[if][\s"',=]*https?:`,
}, "|"))

func registrySign() manifest.Sign { return signs.FindString }
