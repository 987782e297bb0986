package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"golang.org/x/mod/modfile"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// rootFile is a file in which projects name what they require directly.
type rootFile struct {
	name      string
	ecosystem pkgref.Ecosystem
	read      func([]byte) ([]string, error)
}

func rootFiles() []rootFile {
	return []rootFile{
		{"requirements.txt", pkgref.Python, requirementRoots},
		{"pyproject.toml", pkgref.Python, pyprojectRoots},
		{"package.json", pkgref.Node, packageRoots},
		{"go.mod", pkgref.Go, moduleRoots},
	}
}

// projectRoots are the names that a project asks for, each once, and the files that
// they stand in. What is no package's name (a URL, a path, an option) is left out.
func projectRoots(project string) (map[pkgref.Ecosystem][]string, []string, error) {
	roots := map[pkgref.Ecosystem][]string{}
	var from []string
	for _, f := range rootFiles() {
		text, err := inProject(project, f.name)
		if err != nil {
			return nil, nil, err
		}
		if text == nil {
			continue
		}
		names, err := f.read(text)
		if err != nil {
			return nil, nil, fault.Invalid("the project's file %s can't be read: %s", filepath.Join(project, f.name), err)
		}
		from = append(from, f.name)
		for _, name := range names {
			if canonical, ok := rootName(f.ecosystem, name); ok {
				roots[f.ecosystem] = append(roots[f.ecosystem], canonical)
			}
		}
	}
	for ecosystem, names := range roots {
		slices.Sort(names)
		roots[ecosystem] = slices.Compact(names)
	}
	return roots, from, nil
}

// rootName is a name as an entry has it: of Python with the extras that are asked for.
func rootName(ecosystem pkgref.Ecosystem, name string) (string, bool) {
	var extras []string
	if ecosystem == pkgref.Python {
		var ok bool
		if name, extras, ok = pkgref.CutExtras(name); !ok {
			return "", false
		}
	}
	canonical, err := pkgref.CanonicalName(ecosystem, name)
	if len(extras) > 0 {
		canonical += "[" + strings.Join(extras, ",") + "]"
	}
	return canonical, err == nil
}

// requirement matches the name with which a requirement begins, with its extras.
func requirement(line string) string {
	found := regexp.MustCompile(`^\s*([A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[A-Za-z0-9._,\s-]*\])?)\s*(?:[<>=!~;#,]|$|\s+[<>=!~;#@\\(]|\s+--hash)`).FindStringSubmatch(line)
	if found == nil || strings.Contains(line, "://") {
		return ""
	}
	return found[1]
}

func requirementRoots(text []byte) ([]string, error) {
	var names []string
	for line := range strings.Lines(string(text)) {
		names = append(names, requirement(strings.TrimRight(line, "\r\n")))
	}
	return names, nil
}

func pyprojectRoots(text []byte) ([]string, error) {
	var document struct {
		Project struct {
			Dependencies []string            `toml:"dependencies"`
			Optional     map[string][]string `toml:"optional-dependencies"`
		} `toml:"project"`
		Groups map[string][]any `toml:"dependency-groups"`
		Build  struct {
			Requires []string `toml:"requires"`
		} `toml:"build-system"`
	}
	if err := toml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	wanted := slices.Concat(document.Project.Dependencies, document.Build.Requires, slices.Concat(slices.Collect(maps.Values(document.Project.Optional))...))
	for _, group := range document.Groups {
		for _, entry := range group {
			if line, ok := entry.(string); ok { // a table includes another group
				wanted = append(wanted, line)
			}
		}
	}
	var names []string
	for _, line := range wanted {
		names = append(names, requirement(line))
	}
	return names, nil
}

func packageRoots(text []byte) ([]string, error) {
	var document struct {
		Dependencies    map[string]string `json:"dependencies"`
		DevDependencies map[string]string `json:"devDependencies"`
		Optional        map[string]string `json:"optionalDependencies"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	var names []string
	for _, list := range []map[string]string{document.Dependencies, document.DevDependencies, document.Optional} {
		for name, wanted := range list {
			if alias, ok := strings.CutPrefix(wanted, "npm:"); ok { // it is installed under another name
				if at := strings.LastIndexByte(alias, '@'); at > 0 {
					alias = alias[:at]
				}
				name = alias
			}
			if strings.Contains(wanted, "://") || strings.HasPrefix(wanted, "file:") || strings.HasPrefix(wanted, "link:") || strings.HasPrefix(wanted, "workspace:") {
				continue
			}
			names = append(names, name)
		}
	}
	return names, nil
}

// moduleRoots are the direct requirements of a go.mod: with_dependencies brings the
// others.
func moduleRoots(text []byte) ([]string, error) {
	f, err := modfile.ParseLax("go.mod", text, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range f.Require {
		if !r.Indirect {
			names = append(names, r.Mod.Path)
		}
	}
	return names, nil
}
