package pip

import (
	"path"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// setupFormat reads setuptools' setup.cfg.
func setupFormat() manifest.Format { return manifest.Format{Name: "setup.cfg", Read: readSetup} }

func readSetup(w *manifest.Wants, m manifest.Text) error {
	for _, o := range optionsIn(m) {
		switch {
		case o.section == "metadata" && o.key == "name":
			w.Keep(strings.Join(o.values, ""))
		case o.section == "options" && (o.key == "install_requires" || o.key == "setup_requires" || o.key == "tests_require"), o.section == "options.extras_require":
			for i, value := range o.values {
				for _, one := range setupValues(o, value) {
					if err := setupValue(w, m, o.lines[i], one); err != nil {
						return err
					}
				}
			}
		default:
			o.registry(w, m)
		}
	}
	w.SearchText(m, registrySign())
	if dir := path.Dir(m.File); !w.Has(path.Join(dir, "pyproject.toml")) && w.Has(path.Join(dir, "setup.py")) {
		addDefaultBuild(w, m.File)
	}
	return nil
}

// registry withholds all names for an option that names where packages come from: setuptools', and pip's in files of its own. Both
// take - for _.
func (o iniOption) registry(w *manifest.Wants, m manifest.Text) {
	switch option := strings.ReplaceAll(o.key, "_", "-"); option {
	case "index-url", "pypi-url":
		for i, value := range o.values {
			w.Registry(m.File, o.lines[i], o.key, value)
		}
	case "dependency-links", "find-links", "extra-index-url", "no-index":
		for _, number := range o.lines {
			w.Withhold(m.File, number, o.key, manifest.OtherRegistry)
		}
	}
}

// setupValues are the requirements of a line: where an option has one line alone, setuptools parts it at ";".
func setupValues(o iniOption, value string) (all []string) {
	if len(o.values) > 1 || !o.begun {
		return []string{value}
	}
	for one := range strings.SplitSeq(value, ";") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// setupValue notes a requirement of setup.cfg, or reads the files that it names.
func setupValue(w *manifest.Wants, m manifest.Text, number int, value string) error {
	files, is := strings.CutPrefix(value, "file:")
	if !is && !strings.Contains(value, ";") && strings.ContainsAny(value, `'"`) {
		w.LeaveOut(m.File, number, value, "it is no requirement that this version can read") // a marker in a list that ";" parts
		return nil
	}
	if !is {
		noteAnyVersion(w, m.File, number, value)
		return nil
	}
	for file := range strings.SplitSeq(files, ",") {
		found, err := w.Include(requirementsOf(false), path.Join(path.Dir(m.File), strings.TrimSpace(file)))
		if err != nil {
			return err
		}
		if !found {
			w.LeaveOut(m.File, number, strings.TrimSpace(file), "there is no such file")
		}
	}
	return nil
}

// iniOption is one of an INI file, as Python's configparser reads it: its value may go on over indented lines.
type iniOption struct {
	section, key string
	values       []string // its lines, without blanks around them and without comments
	lines        []int
	begun        bool // the first of them is the key's own line
	indent       int  // of its key
}

func optionsIn(text manifest.Text) (all []iniOption) {
	section, fresh := "", true // fresh: no option yet since the section began
	for number, one := range text.Lines() {
		one = strings.TrimRight(one, " \t")
		trimmed := strings.TrimSpace(one)
		indent := len(one) - len(strings.TrimLeft(one, " \t"))
		if trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' {
			continue
		}
		if !fresh && indent > all[len(all)-1].indent { // its value goes on
			last := &all[len(all)-1]
			last.values, last.lines = append(last.values, trimmed), append(last.lines, number)
			continue
		}
		if name, _, closed := strings.Cut(trimmed, "]"); closed && trimmed[0] == '[' { // whatever is behind it
			section, fresh = name[1:], true
			continue
		}
		end := strings.IndexAny(trimmed, "=:")
		if end < 0 {
			continue
		}
		fresh = false
		o := iniOption{section: section, key: strings.ToLower(strings.TrimSpace(trimmed[:end])), indent: indent}
		if value := strings.TrimSpace(trimmed[end+1:]); value != "" {
			o.values, o.lines, o.begun = []string{value}, []int{number}, true
		}
		all = append(all, o)
	}
	return all
}
