package pip

import (
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/installer"
	"github.com/cofferdam-dev/cofferdam/internal/manifest"
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
		return indexes{w, m}.file(name)
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
func (client) RegistrySign() *regexp.Regexp { return commands }

// commands are found in files with commands, beside signs: pip, PDM, Poetry and others set a registry by commands, or by a file that is
// written there, and pip's short options may have any value. In files of the tools' own, such keys are compared.
var commands = regexp.MustCompile(signs.String() + "|" + strings.Join([]string{
	`(?-i:index[-_]urls?\b|find[-_]links\b)`, `\bpypi\.[\w.-]*url\b`, `\bpoetry\s+source\s+add\b`, `\bcodeartifact\s+login\b`,
	`\bpip(?:[0-9.]*\s+(?:install|download|wheel|compile|sync)|-compile|-sync)\b[^&|;]*?\s(?-i:-[if])`, `["'](?-i:-[if])["']\s*,`,
	`\buv\s+(?:(?:sync|lock|add|export|tree|pip)\b[^&|;]*?)?--config-file\b`,
}, "|"))

// signs are the variables of pip, uv, PDM and Pipenv, and the options of their commands.
var signs = regexp.MustCompile(strings.Join([]string{
	`(?i)\b(?:PIP|UV|PDM|PIPENV)_(?:[A-Z0-9]+_)*(?:INDEX|INDEXES|LINKS|PYPI|CONFIG_FILE)(?:_[A-Z0-9]+)*\b`, `\bPOETRY_(?:[A-Z0-9]+_)*MIRROR(?:_[A-Z0-9]+)*\b`,
	`--(?:extra-|default-)?index(?:-url)?\b`, `--find-links\b`, `--pypi-(?:url|mirror)\b`, `--no-index\b`, `\bindexserver\b`,
	`(?:^|[\s"'\[,(])-[if][\s"',=]*https?:`,
}, "|"))

func sign() *regexp.Regexp { return signs }
