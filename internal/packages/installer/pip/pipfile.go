package pip

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

func pipfileFormat() manifest.Format {
	return manifest.Format{Name: "Pipfile", Read: func(w *manifest.Wants, m manifest.Text) error {
		var document map[string]any
		if err := toml.Unmarshal(m.Data, &document); err != nil {
			return err
		}
		x := indexes{w, m}
		x.setting([]string{"Pipfile", "source"}, document["source"])
		w.SearchText(m, registrySign())
		for _, section := range slices.Sorted(maps.Keys(document)) {
			table, is := document[section].(map[string]any)
			if !is || slices.Contains([]string{"requires", "scripts", "pipenv"}, section) {
				continue
			}
			if err := (pyprojectReader{w: w, m: m}).addNamed(fmt.Sprintf("[%s]", section), table); err != nil {
				return err
			}
		}
		return nil
	}}
}
