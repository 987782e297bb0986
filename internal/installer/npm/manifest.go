package npm

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/installer"
)

// Manifests implements installer.ManifestReader.
func (client) Manifests() []installer.Manifest {
	return []installer.Manifest{{Name: "package.json", Roots: packageRoots}}
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
