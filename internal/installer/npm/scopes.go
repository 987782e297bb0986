package npm

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/manifest"
)

const otherRegistry = "another registry is named in the configuration file, so these names are not allowed here"

// npmrcFormat reads which scopes npm and pnpm take from registries of their own.
func npmrcFormat() manifest.Format {
	return manifest.Format{Name: ".npmrc", Read: func(w *manifest.Wants, m manifest.Text) error {
		number := 0
		for line := range strings.Lines(string(m.Data)) {
			number++
			key, _, _ := strings.Cut(strings.TrimSpace(line), "=")
			scope, is := strings.CutSuffix(strings.Trim(strings.TrimSpace(key), `"'`), ":registry")
			if is && strings.HasPrefix(scope, "@") {
				keepScope(w, m, number, scope)
			}
		}
		return nil
	}}
}

// yarnrcFormat reads the same of yarn.
func yarnrcFormat() manifest.Format {
	return manifest.Format{Name: ".yarnrc.yml", Read: func(w *manifest.Wants, m manifest.Text) error {
		var document struct {
			Scopes map[string]struct {
				Server string `yaml:"npmRegistryServer"`
			} `yaml:"npmScopes"`
		}
		if err := yaml.Unmarshal(m.Data, &document); err != nil {
			return err
		}
		for _, scope := range slices.Sorted(maps.Keys(document.Scopes)) {
			if document.Scopes[scope].Server != "" {
				keepScope(w, m, m.LineOf("npmScopes", scope), "@"+strings.TrimPrefix(scope, "@"))
			}
		}
		return nil
	}}
}

func keepScope(w *manifest.Wants, m manifest.Text, number int, scope string) {
	w.KeepAll(scope + "/")
	w.LeaveOut(m.File, number, scope+"/*", otherRegistry)
}
