package npm

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/manifest"
)

// Manifests implements installer.ManifestReader. pnpm reads the same ones.
func (client) Manifests() []manifest.Format {
	return []manifest.Format{workspaceFormat(), packageFormat()}
}

const packageName = "package.json"

func packageFormat() manifest.Format { return manifest.Format{Name: packageName, Read: readPackage} }

// packageJSON is what is read of a package.json.
type packageJSON struct {
	Name         string            `json:"name"`
	Dependencies map[string]string `json:"dependencies"`
	Development  map[string]string `json:"devDependencies"`
	Optional     map[string]string `json:"optionalDependencies"`
	Peers        map[string]string `json:"peerDependencies"`
	PeersMeta    map[string]struct {
		Optional bool `json:"optional"`
	} `json:"peerDependenciesMeta"`
	Overrides   json.RawMessage   `json:"overrides"`
	Resolutions map[string]string `json:"resolutions"`
	Workspaces  json.RawMessage   `json:"workspaces"`
	PNPM        struct {
		Overrides map[string]string `json:"overrides"`
	} `json:"pnpm"`
}

func readPackage(w *manifest.Wants, m manifest.Text) error {
	var document packageJSON
	if err := json.Unmarshal(m.Data, &document); err != nil {
		return fmt.Errorf("it is no JSON object: %w", err)
	}
	w.Keep(document.Name)
	for _, f := range []manifest.Format{npmrcFormat(), yarnrcFormat()} {
		if _, err := w.Include(f, path.Join(path.Dir(m.File), f.Name)); err != nil {
			return err
		}
	}
	for name, meta := range document.PeersMeta {
		if meta.Optional { // no client installs it by itself
			delete(document.Peers, name)
		}
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
		replaces := list.section == "resolutions" || list.section == "pnpm"
		for _, name := range slices.Sorted(maps.Keys(list.wanted)) {
			noteSpec(w, m, m.LineOf(`"`+list.section+`"`, `"`+name+`"`), name, list.wanted[name], replaces)
		}
	}
	if err := overrides(w, m, nil, document.Overrides); err != nil {
		return err
	}
	return workspaces(w, m, document.Workspaces)
}

// mostOverrides is how many may lie in each other: each is read again with all that is in it.
const mostOverrides = 100

// overrides are of npm: names to specs, or to objects of the same kind, in which "." is the outer one's.
func overrides(w *manifest.Wants, m manifest.Text, outer []string, text json.RawMessage) error {
	if len(text) == 0 {
		return nil
	}
	if len(outer) > mostOverrides {
		return fmt.Errorf("its overrides lie in each other more than %d times", mostOverrides)
	}
	var table map[string]json.RawMessage
	if err := json.Unmarshal(text, &table); err != nil {
		return fmt.Errorf("its overrides are no object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		number := m.LineOf(`"overrides"`, `"`+name+`"`)
		of := name
		if name == "." && len(outer) > 0 {
			of = outer[len(outer)-1]
		}
		var spec string
		if json.Unmarshal(table[name], &spec) != nil {
			if err := overrides(w, m, append(outer, of), table[name]); err != nil {
				return err
			}
			continue
		}
		noteSpec(w, m, number, of, spec, true)
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
			Packages []string `json:"packages"`
		}
		if err := json.Unmarshal(text, &table); err != nil {
			return fmt.Errorf("its workspaces are no list of patterns: %w", err)
		}
		patterns = table.Packages
	}
	return members(w, m, patterns)
}

func members(w *manifest.Wants, m manifest.Text, patterns []string) error {
	found, err := w.Members(path.Dir(m.File), patterns)
	if err != nil {
		return err
	}
	for _, dir := range found {
		if _, err := w.Include(packageFormat(), path.Join(dir, packageName)); err != nil {
			return err
		}
	}
	return nil
}

func workspaceFormat() manifest.Format {
	return manifest.Format{Name: "pnpm-workspace.yaml", Read: readWorkspace}
}

// readWorkspace reads pnpm's members, and what its catalogs and overrides name: members say "catalog:" for it.
func readWorkspace(w *manifest.Wants, m manifest.Text) error {
	var document struct {
		Packages  []string                     `yaml:"packages"`
		Catalog   map[string]string            `yaml:"catalog"`
		Catalogs  map[string]map[string]string `yaml:"catalogs"`
		Overrides map[string]string            `yaml:"overrides"`
		Config    map[string]any               `yaml:"configDependencies"`
	}
	if err := yaml.Unmarshal(m.Data, &document); err != nil {
		return err
	}
	for _, section := range slices.Sorted(maps.Keys(document.Catalogs)) {
		catalog(w, m, section, document.Catalogs[section])
	}
	catalog(w, m, "catalog", document.Catalog)
	for _, name := range slices.Sorted(maps.Keys(document.Overrides)) {
		noteSpec(w, m, m.LineOf("overrides", name), name, document.Overrides[name], true)
	}
	for _, name := range slices.Sorted(maps.Keys(document.Config)) {
		w.Add(name, m.File, m.LineOf("configDependencies", name))
	}
	return members(w, m, document.Packages)
}

func catalog(w *manifest.Wants, m manifest.Text, section string, names map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		noteSpec(w, m, m.LineOf(section, name), name, names[name], false)
	}
}

// noteSpec notes what a package is asked for by. replaces: the spec takes the place of what others ask for under the name, so
// that one which is from the registry too names nothing new; one that is from elsewhere, if only for some versions or parents,
// keeps the name.
func noteSpec(w *manifest.Wants, m manifest.Text, number int, name, spec string, replaces bool) {
	target, why := ofSpec(spec)
	switch {
	case why != "":
		w.LeaveOut(m.File, number, name+" "+spec, why)
		if replaces {
			name = replacedBy(name)
		}
		w.Keep(name)
	case target != "":
		w.Add(target, m.File, number)
	case !replaces && !strings.HasPrefix(spec, "catalog:"): // the catalog has the name
		w.Add(name, m.File, number)
	}
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

var (
	// hosted is "owner/repository", which means a repository of one host.
	hosted  = regexp.MustCompile(`^[^@\s:/]+/[^\s:/@]+(?:#.*)?$`)
	archive = regexp.MustCompile(`(?i)\.(?:tgz|tar\.gz|tar)$`)
	scheme  = regexp.MustCompile(`^(?i:[a-z][a-z0-9+.-]*):`)
	// remote is git's way to write a place on a host: git@host:path.
	remote = regexp.MustCompile(`^[^@\s/]+@[^:\s/]+[:/]`)
)

// ofSpec reads what npm and pnpm take for where a package comes from. why tells that it is no registry's; target is the name of
// an alias, which the registry has it under, "" if that is its own.
func ofSpec(spec string) (target, why string) {
	const ownPlace, repository = "it is a file or directory of your own, so its name is not allowed from the registry", "it comes from a repository, so its name is not allowed from the registry"
	spec = strings.TrimSpace(spec)
	switch kind := strings.ToLower(scheme.FindString(spec)); kind {
	case "":
	case "npm:":
		target = spec[len(kind):]
		if at := strings.LastIndexByte(target, '@'); at > 0 {
			target = target[:at]
		}
		if strings.Trim(target, "0123456789.^~<>=*|- vx") == "" { // pnpm: a range alone
			target = ""
		}
		return target, ""
	case "catalog:":
		return "", ""
	case "file:", "link:", "portal:":
		return "", ownPlace
	case "workspace:":
		return "", "it is a member of the workspace"
	case "http:", "https:":
		return "", "it comes from an address, so its name is not allowed from the registry"
	case "patch:":
		return "", "it is patched, and its name is not read from this"
	case "jsr:":
		return "", "it comes from another registry"
	default: // git:, git+ssh:, github:, gist:, ssh:, and a drive of Windows
		if len(kind) == len("c:") {
			return "", ownPlace
		}
		return "", repository
	}
	switch {
	case strings.HasPrefix(spec, "."), strings.HasPrefix(spec, "/"), strings.HasPrefix(spec, "~/"), strings.HasPrefix(spec, `\`), strings.HasPrefix(spec, `~\`):
		return "", ownPlace
	case archive.MatchString(spec):
		return "", ownPlace
	case remote.MatchString(spec), hosted.MatchString(spec), strings.ContainsRune(spec, '/'):
		return "", repository
	}
	return "", ""
}
