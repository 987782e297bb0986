package pip

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/cofferdam-dev/cofferdam/internal/installer"
)

// Manifests implements installer.ManifestReader.
func (client) Manifests() []installer.Manifest {
	return []installer.Manifest{{Name: RequirementsFile, Roots: requirementRoots}, {Name: "pyproject.toml", Roots: pyprojectRoots}}
}

var requirementLine = regexp.MustCompile(`^\s*([A-Za-z0-9][A-Za-z0-9._-]*\s*(?:\[[A-Za-z0-9._,\s-]*\])?)\s*(?:[<>=!~;#,]|$|\s+[<>=!~;#@\\(]|\s+--hash)`)

// requirement matches the name with which a requirement begins, with its extras.
func requirement(line string) string {
	found := requirementLine.FindStringSubmatch(line)
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
