package pip

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// uvFormat reads uv's settings in a file of their own.
func uvFormat() manifest.Format {
	return manifest.Format{Name: "uv.toml", Read: func(w *manifest.Wants, m manifest.Text) error {
		p := pyprojectReader{w: w, m: m}
		if err := exactly(m.Data, &p.document.Tool.UV); err != nil {
			return err
		}
		p.addUV()
		return indexes{w, m}.readFile("uv")
	}}
}

// hatchFormat reads Hatch's.
func hatchFormat() manifest.Format {
	return manifest.Format{Name: "hatch.toml", Read: func(w *manifest.Wants, m manifest.Text) error {
		var table hatchTable
		if err := exactly(m.Data, &table); err != nil {
			return err
		}
		pyprojectReader{w: w, m: m}.addHatch(table)
		w.SearchText(m, registrySign())
		return nil
	}}
}

// exactly reads TOML as the clients do, who know [Project] for nothing.
func exactly(data []byte, into any) error {
	var table map[string]any
	if err := toml.Unmarshal(data, &table); err != nil {
		return err
	}
	if isDeeper(table, mostWritten) {
		return fmt.Errorf("its tables lie in each other more than %d times", mostWritten)
	}
	dropOthers(reflect.TypeOf(into).Elem(), table)
	text, err := toml.Marshal(table)
	if err != nil {
		return err
	}
	return toml.Unmarshal(text, into)
}

// mostWritten is how many tables and lists may lie in each other: writing one takes the names of all around it.
const mostWritten = 100

// isDeeper tells whether more than some tables and lists lie in each other in a value.
func isDeeper(value any, most int) bool {
	deeper := func(inner any) bool { return most == 0 || isDeeper(inner, most-1) }
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if deeper(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, deeper)
	}
	return false
}

// dropOthers takes out keys that are a struct's but for capitals.
func dropOthers(kind reflect.Type, table map[string]any) {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch kind.Kind() {
	case reflect.Map: // of any names
		for _, value := range table {
			if inner, is := value.(map[string]any); is {
				dropOthers(kind.Elem(), inner)
			}
		}
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(kind) {
			tag := field.Tag.Get("toml")
			for key, value := range table {
				inner, is := value.(map[string]any)
				switch {
				case tag == "" || !strings.EqualFold(key, tag):
				case key != tag:
					delete(table, key)
				case is:
					dropOthers(field.Type, inner)
				}
			}
		}
	default: // any, whose keys whoever reads it looks up
	}
}

var (
	setupCall = regexp.MustCompile(`\bsetup\s*\(`)
	// setupName is each name that is given, with what is read of it if that is a text alone.
	setupName = regexp.MustCompile(`\bname\s*=(?:\s*(?:"([A-Za-z0-9._-]+)"|'([A-Za-z0-9._-]+)')\s*[,)])?`)
)

// keepName keeps the name of a directory's own project. Without one that can be read, any name may be its.
func keepName(w *manifest.Wants, file string, number int, text, dir string) error {
	name, err := nameOf(w, dir)
	if err != nil {
		return err
	}
	if w.Keep(name); name == "" {
		w.Withhold(file, number, text, "no file says its name that can be read surely, so that it may have any")
	}
	return nil
}

// nameOf is the name of a directory's own project, "" if it can't be read. Of setup.py, which is a program, only what is written
// there as a text is known.
func nameOf(w *manifest.Wants, dir string) (string, error) {
	text, err := w.Look(path.Join(dir, "pyproject.toml"))
	if err != nil {
		return "", err
	}
	var document pyproject
	if err := exactly(text, &document); err != nil {
		return "", err
	}
	switch tool := document.Tool; {
	case document.Project != nil && document.Project.Name != "":
		return document.Project.Name, nil
	case tool.Poetry.Name != "":
		return tool.Poetry.Name, nil
	case tool.Flit.Metadata.Name != "":
		return tool.Flit.Metadata.Name, nil
	case tool.Flit.Metadata.Module != "":
		return tool.Flit.Metadata.Module, nil
	}
	if text, err = w.Look(path.Join(dir, "setup.cfg")); err != nil {
		return "", err
	}
	for _, o := range optionsIn(manifest.Text{Data: text}) {
		if o.section == "metadata" && o.key == "name" && !strings.Contains(strings.Join(o.values, ""), ":") {
			return strings.Join(o.values, ""), nil
		}
	}
	if text, err = w.Look(path.Join(dir, "setup.py")); err != nil {
		return "", err
	}
	at := setupCall.FindIndex(text)
	if at == nil || strings.Contains(string(text), "**") {
		return "", nil
	}
	found := setupName.FindAllStringSubmatch(string(text[at[0]:]), -1)
	if len(found) != 1 { // none, or that of something else among them
		return "", nil
	}
	return found[0][1] + found[0][2], nil
}
