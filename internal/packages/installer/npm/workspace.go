package npm

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

func workspaceFormat() manifest.Format {
	return manifest.Format{Name: "pnpm-workspace.yaml", Read: readWorkspace}
}

// readWorkspace reads pnpm's members, its registries, and what its catalogs and overrides name: members say "catalog:" for it.
func readWorkspace(w *manifest.Wants, m manifest.Text) error {
	var document struct {
		Packages   []string             `yaml:"packages"`
		Catalog    specTable            `yaml:"catalog"`
		Catalogs   map[string]specTable `yaml:"catalogs"`
		Overrides  map[string]string    `yaml:"overrides"`
		Config     map[string]any       `yaml:"configDependencies"`
		Extensions map[string]extension `yaml:"packageExtensions"`
		Built      any                  `yaml:"onlyBuiltDependencies"`
		Builds     any                  `yaml:"allowBuilds"`
		Registry   any                  `yaml:"registry"`
		Registries map[string]any       `yaml:"registries"`
		Others     map[string]any       `yaml:",inline"`
	}
	if err := yaml.Unmarshal(m.Data, &document); err != nil {
		return err
	}
	if err := settings(w, path.Dir(m.File)); err != nil {
		return err
	}
	if document.Registry != nil {
		w.Registry(m.File, m.LineOf("registry"), "registry", document.Registry)
	}
	pnpmRegistries(w, m, document.Registries)
	for _, key := range slices.Sorted(maps.Keys(document.Others)) {
		noteKey(w, m, m.LineOf(key), key, document.Others[key])
	}
	builds(w, m, "onlyBuiltDependencies", document.Built)
	allowedBuilds(w, m, document.Builds)
	if err := catalogs(w, m, document.Catalog, document.Catalogs); err != nil {
		return err
	}
	if err := overrides(w, m, document.Overrides); err != nil {
		return err
	}
	configured(w, m, document.Config)
	if err := extensions(w, m, document.Extensions); err != nil {
		return err
	}
	return members(w, m, document.Packages, w.Members)
}

// builds notes the packages that pnpm may run the scripts of, which the project lists since it would not otherwise. It is for a note, so
// that one that is no list refuses nothing.
func builds(w *manifest.Wants, m manifest.Text, section string, list any) {
	all, _ := list.([]any)
	for _, one := range all {
		name, _ := one.(string)
		bare := name
		if at := strings.LastIndexByte(name, '@'); at > 0 { // of one version
			bare = name[:at]
		}
		w.Builds(bare, m.File, m.LineOf(section, name))
	}
}

// allowedBuilds is builds of the newer setting, which also has those that may not.
func allowedBuilds(w *manifest.Wants, m manifest.Text, table any) {
	all := tableOf(table)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] == true {
			builds(w, m, "allowBuilds", []any{name})
		}
	}
}

// configured notes pnpm's plugins and hooks, which it gets from the registry.
func configured(w *manifest.Wants, m manifest.Text, all map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		number := m.LineOf("configDependencies", name)
		table := tableOf(all[name])
		_, isText := all[name].(string)
		switch {
		case !isText && table == nil:
			w.LeaveOut(m.File, number, name, "it has no version, without which pnpm does not ask for it")
		case table["tarball"] != nil:
			w.LeaveOut(m.File, number, name, "it comes from an address, so its name is not allowed from the registry")
			w.Keep(name)
		default:
			w.Add(name, m.File, number)
		}
	}
}

// overrides are pnpm's.
func overrides(w *manifest.Wants, m manifest.Text, all map[string]string) error {
	first, err := firstPackage(w, path.Dir(m.File))
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := noteSpec(w, m, m.LineOf("overrides", name), name, first.meantSpec(all[name]), true); err != nil {
			return err
		}
	}
	return nil
}

// firstPackage is what the package.json beside a workspace's file says, for overrides that mean a spec of it. One that can't be read has none:
// its own reader tells why.
func firstPackage(w *manifest.Wants, dir string) (document packageJSON, err error) {
	data, err := w.Look(path.Join(dir, packageName))
	if err == nil && data != nil && exactly(data, &document) != nil {
		document = packageJSON{}
	}
	return document, err
}

// pnpmRegistries are by scope, "default" among them, or by address, with a list of their scopes.
func pnpmRegistries(w *manifest.Wants, m manifest.Text, registries map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(registries)) {
		number := m.LineOf("registries", key)
		table := tableOf(registries[key])
		scopes, _ := table["scopes"].([]any)
		switch {
		case w.IsAsked(registries[key]):
		case strings.HasPrefix(key, "@"):
			keepScope(w, m, number, key)
		case len(scopes) == 0 || table["default"] == true:
			w.Registry(m.File, number, key, registries[key])
		}
		for _, one := range scopes {
			if scope, is := one.(string); is {
				keepScope(w, m, number, "@"+strings.TrimPrefix(scope, "@"))
			}
		}
	}
}

// catalogs are the specs that members mean by "catalog:".
func catalogs(w *manifest.Wants, m manifest.Text, usual specTable, named map[string]specTable) error {
	for _, section := range slices.Sorted(maps.Keys(named)) {
		if err := catalog(w, m, section, section, named[section]); err != nil {
			return err
		}
	}
	return catalog(w, m, "catalog", "", usual)
}

func catalog(w *manifest.Wants, m manifest.Text, section, called string, names specTable) error {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		w.Define(catalogKey(called, name))
		if err := noteSpec(w, m, m.LineOf(section, name), name, names[name], false); err != nil {
			return err
		}
	}
	return nil
}

// extension is what a project adds to what another's package asks for.
type extension struct {
	Dependencies specTable      `json:"dependencies" yaml:"dependencies"`
	Optional     specTable      `json:"optionalDependencies" yaml:"optionalDependencies"`
	Peers        specTable      `json:"peerDependencies" yaml:"peerDependencies"`
	PeersMeta    map[string]any `json:"peerDependenciesMeta" yaml:"peerDependenciesMeta"`
}

// extensions are dependencies that a project adds to those of others.
func extensions(w *manifest.Wants, m manifest.Text, all map[string]extension) error {
	for _, of := range slices.Sorted(maps.Keys(all)) {
		peers := maps.Clone(all[of].Peers)
		maps.DeleteFunc(peers, func(name, _ string) bool { // which no client installs by itself
			return tableOf(all[of].PeersMeta[name])["optional"] == true
		})
		for _, names := range []specTable{all[of].Dependencies, all[of].Optional, peers} {
			for _, name := range slices.Sorted(maps.Keys(names)) {
				if err := noteSpec(w, m, m.LineOf("packageExtensions", of, name), name, names[name], false); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// tableOf is a value that is a table, or none. A key of YAML's may be a number, or what else is no text: clients have it for its text.
func tableOf(value any) map[string]any {
	mixed, is := value.(map[any]any)
	if !is {
		table, _ := value.(map[string]any)
		return table
	}
	table := make(map[string]any, len(mixed))
	for key, one := range mixed {
		table[fmt.Sprint(key)] = one
	}
	return table
}
