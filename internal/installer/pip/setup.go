package pip

import (
	"path"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/manifest"
)

// setupFormat reads setuptools' setup.cfg.
func setupFormat() manifest.Format { return manifest.Format{Name: "setup.cfg", Read: readSetup} }

func readSetup(w *manifest.Wants, m manifest.Text) error {
	for _, o := range optionsIn(string(m.Data)) {
		switch {
		case o.section == "metadata" && o.key == "name":
			w.Keep(strings.Join(o.values, ""))
		case o.section == "options" && (o.key == "install_requires" || o.key == "setup_requires" || o.key == "tests_require"), o.section == "options.extras_require":
			for i, value := range o.values {
				if err := setupValue(w, m, o.lines[i], value); err != nil {
					return err
				}
			}
		}
	}
	if dir := path.Dir(m.File); !w.Has(path.Join(dir, "pyproject.toml")) && w.Has(path.Join(dir, "setup.py")) {
		w.Add("setuptools", m.File, 0) // without a word of what it is built with, clients take that
	}
	return nil
}

// setupValue notes a requirement of setup.cfg, or reads the files that it names.
func setupValue(w *manifest.Wants, m manifest.Text, number int, value string) error {
	files, is := strings.CutPrefix(value, "file:")
	if !is {
		note(w, m.File, number, value)
		return nil
	}
	for file := range strings.SplitSeq(files, ",") {
		found, err := w.Include(requirementsFormat(), path.Join(path.Dir(m.File), strings.TrimSpace(file)))
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
}

func optionsIn(text string) (all []iniOption) {
	section, number := "", 0
	for one := range strings.Lines(text) {
		number++
		one = strings.TrimRight(one, " \t\r\n")
		trimmed := strings.TrimSpace(one)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case one[0] == ' ' || one[0] == '\t':
			if len(all) > 0 {
				last := &all[len(all)-1]
				last.values, last.lines = append(last.values, trimmed), append(last.lines, number)
			}
		case trimmed[0] == '[':
			section = strings.Trim(trimmed, "[]")
		default:
			end := strings.IndexAny(trimmed, "=:")
			if end < 0 {
				continue
			}
			o := iniOption{section: section, key: strings.ToLower(strings.TrimSpace(trimmed[:end]))}
			if value := strings.TrimSpace(trimmed[end+1:]); value != "" {
				o.values, o.lines = []string{value}, []int{number}
			}
			all = append(all, o)
		}
	}
	return all
}
