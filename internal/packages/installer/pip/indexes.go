package pip

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// indexes notes which registries and places of files a project names: any name may be one of theirs.
type indexes struct {
	w *manifest.Wants
	m manifest.Text
}

// mostNested is how many tables of settings may lie in each other.
const mostNested = 20

// harmless are keys that look like naming a registry, and name none that packages come from, or are told elsewhere; with all that
// is in them.
func harmless() []string {
	return []string{
		"uv.sources", "uv.no-sources-package", "uv.publish-url", "uv.check-url", "uv.extra-build-dependencies", "uv.extra-build-variables",
		"uv.config-settings-package", "uv.exclude-newer-package", "uv.dependency-metadata", "uv.dependency-groups", "uv.build-backend",
		"uv.python-install-mirror", "uv.pypy-install-mirror", "uv.python-downloads-json-url",
		"uv.pip.no-sources-package", "uv.pip.dependency-metadata", "uv.pip.extra-build-dependencies", "uv.pip.extra-build-variables", "uv.pip.config-settings-package",
		"poetry.dependencies", "poetry.dev-dependencies", "poetry.group", "poetry.extras", "poetry.scripts", "poetry.plugins", "poetry.urls", "poetry.requires-plugins", "poetry.build",
		"pdm.dev-dependencies", "pdm.resolution", "pdm.overrides", "pdm.scripts", "pdm.build", "pdm.publish", "pdm.version", "pdm.options",
		"rye.scripts", "pdm.toml.repository", "poetry.toml.repositories", "poetry.toml.http-basic", "poetry.toml.certificates",
	}
}

// inPyproject is the table in which a pyproject.toml has those of tools.
const inPyproject = "tool"

// others is a key of any tool's that names a registry.
var others = regexp.MustCompile(`(?i)index[-_]?urls?|find[-_]?links`)

// readTools reads the tables of a pyproject.toml. Those that bring packages name a registry by whatever looks like one, the others by a
// key that says so.
func (x indexes) readTools() error {
	var document struct {
		Tool map[string]any `toml:"tool"`
	}
	if err := toml.Unmarshal(x.m.Data, &document); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(document.Tool)) {
		names := others.MatchString
		if slices.Contains([]string{"uv", "poetry", "pdm", "rye"}, name) {
			names = manifest.NamesRegistry
		}
		x.walkTable([]string{inPyproject, name}, document.Tool[name], names)
	}
	x.w.SearchText(x.m, registrySign())
	return nil
}

// readFile reads a tool's settings in a file of their own, whose keys harmless has below a name.
func (x indexes) readFile(name string) error {
	var document map[string]any
	if err := toml.Unmarshal(x.m.Data, &document); err != nil {
		return err
	}
	x.walkTable([]string{name}, document, manifest.NamesRegistry)
	x.w.SearchText(x.m, registrySign())
	return nil
}

// walkTable notes the registries that are named in a table, and in those that lie in it.
func (x indexes) walkTable(path []string, value any, names func(key string) bool) {
	if len(path) > mostNested {
		x.w.Withhold(x.m.File, x.lineOf(path[:2]), x.shownKey(path[:2]), "its tables lie in each other too deep to be read, and may name a registry")
		return
	}
	if list, is := value.([]any); is {
		for _, one := range list {
			if table, is := one.(map[string]any); is {
				x.walkTable(path, table, names)
			}
		}
		return
	}
	table, _ := value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(table)) {
		below := append(slices.Clone(path), key)
		switch {
		case key == "pypi-dependencies":
			x.places(below, table[key])
		case key == "index-strategy":
		case slices.Contains(harmless(), strings.TrimPrefix(strings.Join(below, "."), inPyproject+".")):
		case names(key):
			x.setting(below, table[key])
		default:
			x.walkTable(below, table[key], names)
		}
	}
}

// places keeps pixi's names that come from elsewhere. pixi takes those of the project itself from there, too.
func (x indexes) places(path []string, value any) {
	table, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if why := ofSource(table[name]); why != "" {
			x.w.Keep(name)
			x.w.LeaveOut(x.m.File, x.lineOf(append(slices.Clone(path), name)), name, why)
		}
	}
}

// setting notes a key that looks like naming registries: addresses, or tables with one each.
func (x indexes) setting(path []string, value any) {
	if value == nil {
		return
	}
	list, is := value.([]any)
	if !is {
		list = []any{value}
	}
	option := strings.ReplaceAll(path[len(path)-1], "_", "-")
	for _, one := range list {
		table, isTable := one.(map[string]any)
		switch {
		case one == false, one == true && option != "no-index":
		case one == true, option == "find-links":
			x.registry(path, nil)
		case isTable:
			x.readTable(path, table)
		default:
			x.registry(path, one)
		}
	}
}

// readTable reads a table of Pipenv, Poetry, PDM or uv, with a registry's address. One that is
// explicit is asked for the names alone that say so, which are kept; unless it takes the place of
// the one that is asked for all.
func (x indexes) readTable(path []string, table map[string]any) {
	switch {
	case isExplicit(path, table):
		x.w.LeaveOut(x.m.File, x.lineOf(path), x.shownKey(path), "it is a registry of the project's own, whose names are not allowed here")
	case table["url"] == nil && namesPublic(table["name"]): // Poetry's and PDM's word for what they ask anyway
	case table["type"] != nil:
		x.registry(path, nil)
	default:
		x.registry(path, table["url"])
	}
}

// isExplicit tells whether a registry is asked for some names alone, by the word that its tool has for that: the others ask it for all.
func isExplicit(path []string, table map[string]any) bool {
	switch strings.TrimPrefix(strings.Join(path, "."), inPyproject+".") {
	case "uv.index":
		return table["explicit"] == true && (table["default"] == nil || table["default"] == false)
	case "poetry.source":
		return table["priority"] == "explicit"
	}
	return false
}

func (x indexes) registry(path []string, address any) {
	x.w.Registry(x.m.File, x.lineOf(path), x.shownKey(path), address)
}

// shownKey is a key as people write it: in a file of the tool's own without its name.
func (x indexes) shownKey(path []string) string {
	if path[0] == inPyproject {
		return strings.Join(path, ".")
	}
	return strings.Join(path[1:], ".")
}

// lineOf is a key's, whose tables may be written apart from it.
func (x indexes) lineOf(path []string) int {
	key := path[len(path)-1]
	for _, words := range [][]string{{x.shownKey(path)}, {x.shownKey(path[:len(path)-1]), key}, {key}} {
		if number := x.m.LineOf(words...); number > 0 {
			return number
		}
	}
	return 0
}

// namesPublic tells of the name that clients have for the registry that they ask by themselves: the ecosystem's.
func namesPublic(name any) bool {
	text, _ := name.(string)
	return strings.EqualFold(text, pkgref.Python.Traits().OSV)
}
