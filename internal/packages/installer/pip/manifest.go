package pip

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// Manifests implements installer.ManifestReader.
func (client) Manifests() []manifest.Format {
	return []manifest.Format{requirementsFormat(), pyprojectFormat(), setupFormat(), pipfileFormat(), uvFormat(), hatchFormat()}
}

func pyprojectFormat() manifest.Format {
	return manifest.Format{Name: "pyproject.toml", Read: readPyproject}
}

// pyproject is what is read of a pyproject.toml: by the standards (PEP 518, 621, 735), and of the tables of tools.
type pyproject struct {
	Project *struct {
		Name         string              `toml:"name"`
		Dependencies []string            `toml:"dependencies"`
		Optional     map[string][]string `toml:"optional-dependencies"`
		Dynamic      []string            `toml:"dynamic"`
	} `toml:"project"`
	Groups map[string][]any `toml:"dependency-groups"`
	Build  *struct {
		Requires []string `toml:"requires"`
		Backend  string   `toml:"build-backend"`
	} `toml:"build-system"`
	Tool struct {
		UV         uvTable     `toml:"uv"`
		Poetry     poetryTable `toml:"poetry"`
		Setuptools struct {
			Dynamic struct {
				Dependencies any            `toml:"dependencies"`
				Optional     map[string]any `toml:"optional-dependencies"`
			} `toml:"dynamic"`
		} `toml:"setuptools"`
		PDM struct {
			Development map[string][]string `toml:"dev-dependencies"`
			Build       struct {
				Editable string `toml:"editable-backend"`
			} `toml:"build"`
			Resolution struct {
				Overrides map[string]any `toml:"overrides"`
			} `toml:"resolution"`
		} `toml:"pdm"`
		Hatch hatchTable `toml:"hatch"`
		Flit  struct {
			Metadata struct { // before the standard
				Module   string              `toml:"module"`
				Name     string              `toml:"dist-name"`
				Requires []string            `toml:"requires"`
				Extras   map[string][]string `toml:"requires-extra"`
			} `toml:"metadata"`
		} `toml:"flit"`
	} `toml:"tool"`
}

type hatchTable struct {
	Environments map[string]struct {
		Dependencies []string `toml:"dependencies"`
		More         []string `toml:"extra-dependencies"`
	} `toml:"envs"`
}

type uvTable struct {
	Constraints []string         `toml:"constraint-dependencies"`
	BuildLimits []string         `toml:"build-constraint-dependencies"`
	ExtraBuild  map[string][]any `toml:"extra-build-dependencies"`
	Development []string         `toml:"dev-dependencies"`
	Overrides   []any            `toml:"override-dependencies"`
	Sources     map[string]any   `toml:"sources"`
	Workspace   struct {
		Members []string `toml:"members"`
		Exclude []string `toml:"exclude"`
	} `toml:"workspace"`
}

func readPyproject(w *manifest.Wants, m manifest.Text) error {
	var document pyproject
	if err := exactly(m.Data, &document); err != nil {
		return err
	}
	p := pyprojectReader{w, m, document}
	if err := p.sources(); err != nil {
		return err
	}
	if err := (indexes{w, m}).readTools(); err != nil {
		return err
	}
	p.project()
	p.groups()
	p.addBuild()
	if err := p.poetry(); err != nil {
		return err
	}
	p.addFlit()
	if err := p.dynamic(); err != nil {
		return err
	}
	return p.workspace()
}

// pyprojectReader reads one. Sources come first: they say which names are no registry's.
type pyprojectReader struct {
	w        *manifest.Wants
	m        manifest.Text
	document pyproject
}

func (p pyprojectReader) addLines(lines ...string) {
	for _, l := range lines {
		noteAnyVersion(p.w, p.m.File, p.m.LineOf(l), l)
	}
}

func (p pyprojectReader) leaveOut(word, text, why string) {
	p.w.LeaveOut(p.m.File, p.m.LineOf(word), text, why)
}

func (p pyprojectReader) project() {
	project := p.document.Project
	if project == nil {
		return
	}
	p.w.Keep(project.Name) // a project may ask for its own extras
	for _, l := range project.Dependencies {
		noteRange(p.w, p.m.File, p.m.LineOf(l), l)
	}
	for _, name := range slices.Sorted(maps.Keys(project.Optional)) {
		p.addLines(project.Optional[name]...)
	}
}

// groups are those of the standard, and what was there before it. A table in one includes another group, and all are read.
func (p pyprojectReader) groups() {
	for _, name := range slices.Sorted(maps.Keys(p.document.Groups)) {
		for _, entry := range p.document.Groups[name] {
			if l, is := entry.(string); is {
				p.addLines(l)
			}
		}
	}
	tool := p.document.Tool
	p.addUV()
	for _, name := range slices.Sorted(maps.Keys(tool.PDM.Development)) {
		p.addLines(tool.PDM.Development[name]...)
	}
	p.addHatch(tool.Hatch)
}

// addUV notes what uv's settings ask for.
func (p pyprojectReader) addUV() {
	uv := p.document.Tool.UV
	for _, l := range slices.Concat(uv.Constraints, uv.BuildLimits) {
		noteAddress(p.w, p.m.File, p.m.LineOf(l), l)
	}
	p.addLines(uv.Development...)
	p.addSome(uv.Overrides)
	for _, name := range slices.Sorted(maps.Keys(uv.ExtraBuild)) {
		p.addSome(uv.ExtraBuild[name])
	}
}

// addSome adds requirements that are lines, or tables with one.
func (p pyprojectReader) addSome(entries []any) {
	for _, entry := range entries {
		if table, is := entry.(map[string]any); is {
			entry = table["requirement"]
		}
		if l, is := entry.(string); is {
			p.addLines(l)
		}
	}
}

func (p pyprojectReader) addHatch(table hatchTable) {
	for _, name := range slices.Sorted(maps.Keys(table.Environments)) {
		p.addLines(slices.Concat(table.Environments[name].Dependencies, table.Environments[name].More)...)
	}
}

func (p pyprojectReader) addFlit() {
	table := p.document.Tool.Flit.Metadata
	p.w.Keep(table.Module)
	p.w.Keep(table.Name)
	p.addLines(table.Requires...)
	for _, name := range slices.Sorted(maps.Keys(table.Extras)) {
		p.addLines(table.Extras[name]...)
	}
}

// sources keeps names that uv takes from elsewhere, and reads the directories among them.
func (p pyprojectReader) sources() error {
	for _, name := range slices.Sorted(maps.Keys(p.document.Tool.UV.Sources)) {
		if why := ofSource(p.document.Tool.UV.Sources[name]); why != "" {
			p.w.Keep(name)
			p.w.LeaveOut(p.m.File, p.m.LineOf("tool.uv.sources", name), name, why)
			if err := p.readFolders(p.document.Tool.UV.Sources[name]); err != nil {
				return err
			}
		}
	}
	overrides := p.document.Tool.PDM.Resolution.Overrides
	for _, name := range slices.Sorted(maps.Keys(overrides)) { // to versions, or to places
		why := ofSource(overrides[name])
		if text, is := overrides[name].(string); is && strings.ContainsAny(text, ":/@") {
			why = "it comes from an address, so its name is not allowed from the registry"
		}
		if why == "" {
			p.w.Override(name)
			continue
		}
		p.w.Keep(name)
		p.w.LeaveOut(p.m.File, p.m.LineOf("overrides", name), name, why)
	}
	return nil
}

// ofSource tells where a source takes a package from, "" if from the registry.
func ofSource(source any) string {
	switch s := source.(type) {
	case []any: // one for each platform: a name that is not always the registry's is never its
		for _, one := range s {
			if why := ofSource(one); why != "" {
				return why
			}
		}
	case map[string]any:
		for key, why := range map[string]string{
			"workspace": "it is a member of the workspace", "path": "it is a directory or file of your own", "git": "it comes from a repository", "url": "it comes from an address",
			"index": "it comes from a registry of its own", "file": "it is a file of your own", "hg": "it comes from a repository", "svn": "it comes from a repository", "bzr": "it comes from a repository", "source": "it comes from a registry of its own",
		} {
			if value, has := s[key]; has && value != false {
				return why
			}
		}
	}
	return ""
}

// dynamic follows what setuptools reads from files.
func (p pyprojectReader) dynamic() error {
	if p.document.Project == nil {
		return nil
	}
	from := p.document.Tool.Setuptools.Dynamic
	for _, name := range p.document.Project.Dynamic {
		var tables []any
		format := requirementsOf(false)
		switch name {
		case "dependencies":
			format = requirementsFormat()
			tables = []any{from.Dependencies}
		case "optional-dependencies":
			tables = slices.Collect(maps.Values(from.Optional))
		default:
			continue
		}
		if len(tables) == 0 || tables[0] == nil {
			p.leaveOut("dynamic", name, "the project's build makes them up, which is a program that is not run here")
		}
		for _, table := range tables {
			if err := p.readFiles(table, format); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p pyprojectReader) readFiles(table any, format manifest.Format) error {
	entries, _ := table.(map[string]any)
	var names []string
	switch file := entries["file"].(type) {
	case string:
		names = []string{file}
	case []any:
		for _, one := range file {
			if name, is := one.(string); is {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		found, err := p.w.Include(format, path.Join(path.Dir(p.m.File), name))
		if err != nil {
			return err
		}
		if !found {
			p.leaveOut(name, name, "there is no such file")
		}
	}
	return nil
}

// workspace reads uv's members.
func (p pyprojectReader) workspace() error {
	space := p.document.Tool.UV.Workspace
	var patterns []string
	for i, pattern := range slices.Concat(space.Members, space.Exclude) {
		switch {
		case strings.HasPrefix(pattern, "!"):
			p.w.Withhold(p.m.File, p.m.LineOf(pattern), pattern, "uv takes nothing away by !, which is a part of a name to it, so that a member of the workspace may have any name")
		case i < len(space.Members):
			patterns = append(patterns, pattern)
		default:
			patterns = append(patterns, "!"+pattern)
		}
	}
	members, err := p.w.AllMembers(p.m, patterns)
	if err != nil {
		return err
	}
	for _, dir := range members {
		found, err := readProject(p.w, dir)
		if err != nil {
			return err
		}
		if found {
			if err := keepName(p.w, p.m.File, p.m.LineOf("members"), dir, dir); err != nil {
				return err
			}
		}
	}
	return nil
}
