package pip

import (
	"maps"
	"slices"
	"strings"
)

// poetryTable is what Poetry had before the standard, and what its newer releases still read.
type poetryTable struct {
	Name         string         `toml:"name"`
	Dependencies map[string]any `toml:"dependencies"`
	Development  map[string]any `toml:"dev-dependencies"`
	Group        map[string]struct {
		Dependencies map[string]any `toml:"dependencies"`
	} `toml:"group"`
	Plugins map[string]any `toml:"requires-plugins"`
}

func (p pyprojectReader) poetry() error {
	table := p.document.Tool.Poetry
	p.w.Keep(table.Name)
	for _, one := range []struct {
		section string
		names   map[string]any
	}{
		{"tool.poetry.requires-plugins", table.Plugins},
		{"tool.poetry.dependencies", table.Dependencies},
		{"tool.poetry.dev-dependencies", table.Development},
	} {
		if err := p.addNamed(one.section, one.names); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(table.Group)) {
		if err := p.addNamed("tool.poetry.group."+name, table.Group[name].Dependencies); err != nil {
			return err
		}
	}
	return nil
}

// addNamed adds packages of a table by name, as Poetry and Pipenv write them, and reads the directories among them, whose own
// requirements these ask for.
func (p pyprojectReader) addNamed(section string, table map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if name == "python" {
			continue
		}
		number := p.m.LineOf(section, name)
		if why := ofSource(table[name]); why != "" {
			p.w.Keep(name)
			p.w.LeaveOut(p.m.File, number, name, why)
			if err := p.readFolders(table[name]); err != nil {
				return err
			}
			continue
		}
		p.w.Add(name+extrasOf(table[name]), p.m.File, number)
	}
	return nil
}

// extrasOf are those of an entry: "[a,b]".
func extrasOf(entry any) string {
	table, _ := entry.(map[string]any)
	list, _ := table["extras"].([]any)
	var names []string
	for _, one := range list {
		if name, is := one.(string); is {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "[" + strings.Join(names, ",") + "]"
}
