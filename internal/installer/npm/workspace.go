package npm

import (
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/manifest"
)

func workspaceFormat() manifest.Format {
	return manifest.Format{Name: "pnpm-workspace.yaml", Read: readWorkspace}
}

// readWorkspace reads pnpm's members, its registries, and what its catalogs and overrides name: members say "catalog:" for it.
func readWorkspace(w *manifest.Wants, m manifest.Text) error {
	var document struct {
		Packages   []string                  `yaml:"packages"`
		Catalog    specTable                 `yaml:"catalog"`
		Catalogs   map[string]specTable      `yaml:"catalogs"`
		Overrides  map[string]string         `yaml:"overrides"`
		Config     map[string]any            `yaml:"configDependencies"`
		Extensions map[string]map[string]any `yaml:"packageExtensions"`
		Built      any                       `yaml:"onlyBuiltDependencies"`
		Builds     any                       `yaml:"allowBuilds"`
		Registry   any                       `yaml:"registry"`
		Registries map[string]any            `yaml:"registries"`
		Others     map[string]any            `yaml:",inline"`
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
	all, _ := table.(map[string]any)
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
		switch table, _ := all[name].(map[string]any); {
		case all[name] == nil:
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
		table, _ := registries[key].(map[string]any)
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

// extensions are dependencies that a project adds to those of others.
func extensions(w *manifest.Wants, m manifest.Text, all map[string]map[string]any) error {
	for _, of := range slices.Sorted(maps.Keys(all)) {
		optional, _ := all[of]["peerDependenciesMeta"].(map[string]any)
		for _, list := range []string{"dependencies", "optionalDependencies", "peerDependencies"} {
			names, _ := all[of][list].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				meta, _ := optional[name].(map[string]any)
				spec, is := names[name].(string)
				if !is || list == "peerDependencies" && meta["optional"] == true { // which no client installs by itself
					continue
				}
				if err := noteSpec(w, m, m.LineOf("packageExtensions", of, name), name, spec, false); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
