package npm

import (
	"cmp"
	"encoding/json" // for values as they are written
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// Manifests implements installer.ManifestReader. pnpm reads the same ones.
func (client) Manifests() []manifest.Format {
	return []manifest.Format{workspaceFormat(), packageFormat(), yamlFormat()}
}

const packageName = "package.json"

func packageFormat() manifest.Format { return manifest.Format{Name: packageName, Read: readPackage} }

// packageJSON is what is read of a package.json.
type packageJSON struct {
	Name         string    `json:"name"`
	Dependencies specTable `json:"dependencies"`
	Development  specTable `json:"devDependencies"`
	Optional     specTable `json:"optionalDependencies"`
	Peers        specTable `json:"peerDependencies"`
	PeersMeta    map[string]struct {
		Optional bool `json:"optional"`
	} `json:"peerDependenciesMeta"`
	Overrides   json.RawMessage   `json:"overrides"`
	Resolutions map[string]string `json:"resolutions"`
	Workspaces  json.RawMessage   `json:"workspaces"`
	PNPM        struct {
		Overrides  map[string]string    `json:"overrides"`
		Extensions map[string]extension `json:"packageExtensions"`
		Built      any                  `json:"onlyBuiltDependencies"`
	} `json:"pnpm"`
	Manager  any                  `json:"packageManager"` // text; what else it is means nothing
	Catalog  specTable            `json:"catalog"`        // bun's
	Catalogs map[string]specTable `json:"catalogs"`
}

func readPackage(w *manifest.Wants, m manifest.Text) error {
	var document packageJSON
	if err := exactly(m.Data, &document); err != nil {
		return fmt.Errorf("it is no JSON object: %w", err)
	}
	w.SearchText(m, signs.FindString) // its scripts
	return notePackage(w, m, document)
}

// yamlFormat reads pnpm's other form of a package.json, which that goes before.
func yamlFormat() manifest.Format {
	return manifest.Format{Name: "package.yaml", Read: func(w *manifest.Wants, m manifest.Text) error {
		if w.Has(path.Join(path.Dir(m.File), packageName)) {
			return nil
		}
		var table map[string]any
		if err := yaml.Unmarshal(m.Data, &table); err != nil {
			return err
		}
		document, is := packageOf(table)
		if !is { // Haskell's file of this name has a list of dependencies
			w.Withhold(m.File, 0, "", "it is no package as pnpm has it, so that it may have any name")
			return nil
		}
		return notePackage(w, m, document)
	}}
}

// packageOf is what a table says as a package; is tells whether it is one.
func packageOf(table map[string]any) (document packageJSON, is bool) {
	text, err := json.Marshal(table)
	is = err == nil && exactly(text, &document) == nil
	return document, is
}

// notePackage notes what a package asks for. One without a name has that of its directory, as a member of a workspace.
func notePackage(w *manifest.Wants, m manifest.Text, document packageJSON) error {
	dir := path.Dir(m.File)
	if w.Keep(document.Name); document.Name == "" && dir != "." {
		w.Keep(path.Base(dir))
		w.Keep(path.Base(path.Dir(dir)) + "/" + path.Base(dir)) // in a directory of a scope
	}
	if err := settings(w, dir); err != nil {
		return err
	}
	for _, list := range []struct {
		section string
		wanted  map[string]string
	}{
		{"dependencies", document.Dependencies},
		{"devDependencies", document.Development},
		{"optionalDependencies", document.Optional},
		{"peerDependencies", document.Peers},
		{"resolutions", document.Resolutions},
		{"pnpm", document.PNPM.Overrides},
	} {
		for _, name := range slices.Sorted(maps.Keys(list.wanted)) {
			if err := noteAsked(w, m, document, list.section, name, list.wanted[name]); err != nil {
				return err
			}
		}
	}
	builds(w, m, "onlyBuiltDependencies", document.PNPM.Built)
	if err := catalogs(w, m, document.Catalog, document.Catalogs); err != nil {
		return err
	}
	if err := extensions(w, m, document.PNPM.Extensions); err != nil {
		return err
	}
	if err := document.overrides(w, m, nil, document.Overrides); err != nil {
		return err
	}
	return workspaces(w, m, document.Workspaces)
}

// noteAsked notes what one line of a package's section asks for.
func noteAsked(w *manifest.Wants, m manifest.Text, document packageJSON, section, name, spec string) error {
	number, replaces := m.LineOf(quoted(m, section), quoted(m, name)), section == "resolutions" || section == "pnpm"
	switch {
	case replaces:
		return noteSpec(w, m, number, name, document.meantSpec(spec), true)
	case section == "peerDependencies" && document.hasName(name): // which says what it is
		if document.isTwoPackages(name, document.Peers) {
			w.LeaveOut(m.File, number, name+" "+spec, "another section has another package under this name, so that it is not allowed by this")
		}
		return nil
	case section == "peerDependencies" && document.PeersMeta[name].Optional && !document.isOfPNPM(w): // only pnpm installs it by itself
		leaveOutAlias(w, m, number, name, spec)
		return nil
	case document.isTwoPackages(name):
		w.LeaveOut(m.File, number, name+" "+spec, "its sections have different packages under this name, and clients differ in which one they take")
		w.NoteFolder(m.File, folderOf(spec))
		w.Keep(name)
		return readFolder(w, m, spec)
	}
	return noteSpec(w, m, number, name, spec, false)
}

// isOfPNPM tells whether pnpm installs a package, which installs the peers of the packages that it works on, if they are optional, too.
func (p packageJSON) isOfPNPM(w *manifest.Wants) bool {
	manager, _ := p.Manager.(string)
	return strings.HasPrefix(manager, "pnpm@") || w.HasAny("pnpm-workspace.yaml", "pnpm-lock.yaml")
}

// meantSpec is the spec that an override has, which may be "$NAME" for that by which the project's first package asks for a name.
func (p packageJSON) meantSpec(spec string) string {
	name, refers := strings.CutPrefix(spec, "$")
	if !refers || p.isTwoPackages(name) {
		return spec
	}
	for _, section := range append(p.sections(), p.Peers) {
		if found, has := section[name]; has {
			return found
		}
	}
	return spec
}

// leaveOutAlias notes a name that npm asks for by what is written here only if a manifest has it for another package.
func leaveOutAlias(w *manifest.Wants, m manifest.Text, number int, name, spec string) {
	w.LeaveOutIf(aliasKey(name), m.File, number, name+" "+spec, "a manifest has this name for another package, so that it is not allowed by this")
}

// aliasKey is that of a name that a manifest has for another package.
func aliasKey(name string) string { return "alias\x00" + name }

// sections are the packages that are asked for whoever has this one.
func (p packageJSON) sections() []specTable {
	return []specTable{p.Dependencies, p.Development, p.Optional}
}

// hasName tells whether a section has a name.
func (p packageJSON) hasName(name string) bool {
	return slices.ContainsFunc(p.sections(), func(s specTable) bool { _, has := s[name]; return has })
}

// isTwoPackages tells whether sections, and more, lead to different packages by one name. Of two sections npm takes that for development,
// and pnpm the other; of a section and the peers both take the section, but pnpm takes the peer in a directory that another package asks for.
func (p packageJSON) isTwoPackages(name string, more ...specTable) bool {
	found := map[string]bool{}
	for _, section := range append(p.sections(), more...) {
		if spec, has := section[name]; has {
			target, why := ofSpec(spec)
			found[cmp.Or(why, target, name)] = true
		}
	}
	return len(found) > 1
}

// quoted is a word as a JSON file has it, or a YAML one.
func quoted(m manifest.Text, word string) string {
	if path.Ext(m.File) == ".json" {
		return `"` + word + `"`
	}
	return word
}

// mostOverrides is how many may lie in each other: each is read again with all that is in it.
const mostOverrides = 100

// overrides are of npm: names to specs, or to objects of the same kind, in which "." is the outer one's.
func (p packageJSON) overrides(w *manifest.Wants, m manifest.Text, outer []string, text json.RawMessage) error {
	if len(text) == 0 {
		return nil
	}
	if len(outer) > mostOverrides {
		return fmt.Errorf("its overrides lie in each other more than %d times", mostOverrides)
	}
	var table map[string]json.RawMessage
	if err := exactly(text, &table); err != nil {
		return fmt.Errorf("its overrides are no object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		number := m.LineOf(`"overrides"`, `"`+name+`"`)
		above := outer
		of := name
		if last := len(outer) - 1; name == "." && last >= 0 {
			of, above = outer[last], outer[:last]
		}
		var spec string
		if json.Unmarshal(table[name], &spec) != nil {
			if err := p.overrides(w, m, append(outer, of), table[name]); err != nil {
				return err
			}
			continue
		}
		key := strings.Join(append(slices.Clone(above), of), ">") // as pnpm has it
		if err := noteSpec(w, m, number, key, p.meantSpec(spec), true); err != nil {
			return err
		}
	}
	return nil
}

// workspaces reads the members: a list of patterns, or an object that has one.
func workspaces(w *manifest.Wants, m manifest.Text, text json.RawMessage) error {
	if len(text) == 0 {
		return nil
	}
	var patterns []string
	if json.Unmarshal(text, &patterns) != nil {
		var table struct {
			Packages []string             `json:"packages"`
			Catalog  specTable            `json:"catalog"` // bun's
			Catalogs map[string]specTable `json:"catalogs"`
		}
		if err := exactly(text, &table); err != nil {
			return fmt.Errorf("its workspaces are no list of patterns: %w", err)
		}
		patterns = table.Packages
		if err := catalogs(w, m, table.Catalog, table.Catalogs); err != nil {
			return err
		}
	}
	return members(w, m, patterns, w.MembersTakenBack)
}

// members reads those that patterns lead to.
func members(w *manifest.Wants, m manifest.Text, patterns []string, find func(manifest.Text, []string) ([]string, error)) error {
	found, err := find(m, patterns)
	if err != nil {
		return err
	}
	for _, dir := range found {
		is, err := w.Include(packageFormat(), path.Join(dir, packageName))
		if err != nil {
			return err
		}
		if five := path.Join(dir, "package.json5"); !is && w.Has(five) {
			w.Withhold(five, 0, "", "it is a member of the workspace, and JSON5 is not read here, so that it may have any name")
			continue
		}
		if _, err := w.Include(yamlFormat(), path.Join(dir, yamlFormat().Name)); err != nil {
			return err
		}
	}
	return nil
}

// noteSpec notes what a package is asked for by, and reads it if it is a directory of the project. replaces: the spec takes the place of what
// others ask for under the name, so that one which is from the registry too names nothing new; one that is from elsewhere, if only
// for some versions or parents, keeps the name, and so does another package, or none, for all of them. A spec of a catalog is
// what that has: without one, the name is left out.
func noteSpec(w *manifest.Wants, m manifest.Text, number int, name, spec string, replaces bool) error {
	target, why := ofSpec(spec)
	switch {
	case why != "":
		w.LeaveOut(m.File, number, name+" "+spec, why)
		w.NoteFolder(m.File, folderOf(spec))
		if replaces {
			name = replacedBy(name)
		}
		w.Keep(name)
		return readFolder(w, m, spec)
	case target != "":
		noteOther(w, m, number, name, spec, replaces)
	case replaces:
		noteReplacement(w, m, number, name, spec)
	case strings.HasPrefix(spec, inCatalog):
		w.Refer(catalogKey(strings.TrimPrefix(spec, inCatalog), name), m.File, number, name+" "+spec, "no catalog of the project's says which version that is, or where it comes from")
	default:
		w.Add(name, m.File, number)
		w.Name(name, cmp.Or(aliased(spec), anyVersion))
	}
	return nil
}

// noteOther notes another package than the name says, which a spec leads to.
func noteOther(w *manifest.Wants, m manifest.Text, number int, name, spec string, replaces bool) {
	target, _ := ofSpec(spec)
	w.Add(target, m.File, number)
	w.Name(target, aliased(spec))
	switch {
	case target == name:
	case replaces:
		keepReplaced(w, name)
	default:
		w.Define(aliasKey(name))
	}
}

// noteReplacement notes a spec that takes the place of what others ask for under a name: "-" is none at all.
func noteReplacement(w *manifest.Wants, m manifest.Text, number int, key, spec string) {
	if strings.TrimSpace(spec) == "-" {
		keepReplaced(w, key)
		return
	}
	name := replacedBy(key)
	leaveOutAlias(w, m, number, name, spec)
	_, isRange := pkgref.ParseRange(pkgref.Node, spec)
	if isRange && !strings.Contains(spec, " - ") && pkgref.MayTakePreReleases(pkgref.Node, spec) { // which no requirement of the name lets in
		w.AddUnless(aliasKey(name), name, m.File, number)
	}
	w.Name(name, spec)
}

// keepReplaced keeps a name that an override has another package for, or none, whatever asks for it and in which version.
func keepReplaced(w *manifest.Wants, key string) {
	if replacedBy(key) == key {
		w.KeepBy(key, "an override has another package in its place, or none")
	}
}

// anyVersion is the range of a spec that has none.
const anyVersion = "*"

// aliased is the range of a spec, also of one that names another package.
func aliased(spec string) string {
	if _, among, is := splitAlias(spec); is {
		return among
	}
	return strings.TrimSpace(spec)
}

// inCatalog begins a spec that a catalog has.
const inCatalog = "catalog:"

// catalogKey is that of a name in a catalog, for references. The one without a name is also called default.
func catalogKey(catalog, name string) string {
	return cmp.Or(strings.TrimSpace(catalog), "default") + "\x00" + name
}

var (
	// parents is how pnpm parts a package from what asks for it, as against ">" in a range.
	parents = regexp.MustCompile(`^.*[^ |@]>`)
	lastOf  = regexp.MustCompile(`((?:@[^/@\s]+/)?[^/@\s]+)(?:@.*)?$`)
)

// replacedBy is the name in the key of an override or a resolution: "a>b@1", "a/**/b", "b@npm:1".
func replacedBy(key string) string {
	if found := lastOf.FindStringSubmatch(parents.ReplaceAllString(key, "")); found != nil {
		return found[1]
	}
	return key
}
