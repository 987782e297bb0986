package pip

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/manifest"
)

// requirementsFormat reads requirements files, as pip does.
func requirementsFormat() manifest.Format {
	return manifest.Format{Name: RequirementsFile, Read: readRequirements}
}

// line is one of a requirements file, with those that a backslash joins to it.
type line struct {
	number int // of its first
	text   string
}

var comment = regexp.MustCompile(`(^|\s+)#.*$`)

// joined are the lines of a file, without comments.
func joined(text string) (all []line) {
	var open *line
	number := 0
	for one := range strings.Lines(text) {
		number++
		one = strings.TrimRight(one, "\r\n")
		isComment := strings.HasPrefix(strings.TrimLeft(one, blanks), "#")
		if open == nil {
			open = &line{number: number}
		} else if isComment { // pip has a comment end what was joined
			one = " " + strings.TrimLeft(one, blanks)
		}
		if rest, goesOn := strings.CutSuffix(one, `\`); goesOn && !isComment {
			open.text += rest
			continue
		}
		open.text += one
		all, open = append(all, *open), nil
	}
	if open != nil {
		all = append(all, *open)
	}
	for i := range all {
		all[i].text = strings.Trim(comment.ReplaceAllString(all[i].text, ""), blanks)
	}
	return slices.DeleteFunc(all, func(l line) bool { return l.text == "" })
}

// optionsOfALine are those that may follow a requirement, and begin what says nothing of its name.
var optionsOfALine = regexp.MustCompile(`\s--?[A-Za-z]`)

func readRequirements(w *manifest.Wants, m manifest.Text) error {
	for _, l := range joined(string(m.Data)) {
		if strings.HasPrefix(l.text, "-") {
			if err := readOption(w, m, l); err != nil {
				return err
			}
			continue
		}
		text := l.text
		if at := optionsOfALine.FindStringIndex(text); at != nil {
			text = text[:at[0]]
		}
		if r, _ := parseRequirement(text); r.url != "" {
			note(w, m.File, l.number, text)
			continue
		}
		if why := otherPlace(text); why != "" {
			w.LeaveOut(m.File, l.number, text, why)
			continue
		}
		note(w, m.File, l.number, text)
	}
	return nil
}

// otherPlace tells why a line of a requirements file without a name asks for nothing of a registry.
func otherPlace(text string) string {
	lower := strings.ToLower(text)
	switch {
	case strings.HasPrefix(lower, "file:"), strings.HasPrefix(text, "."), strings.HasPrefix(text, "/"), strings.HasPrefix(text, "~"):
		return "it is a file or directory of your own"
	case isAddress(lower):
		return "it is an address, and nothing is allowed by one"
	case strings.HasSuffix(lower, ".whl"), strings.HasSuffix(lower, ".tar.gz"), strings.HasSuffix(lower, ".zip"):
		return "it is a file of your own"
	case strings.Contains(text, "${"):
		return "it has a variable, whose value is not known here"
	}
	return ""
}

var address = regexp.MustCompile(`^(?:[a-z][a-z0-9+.-]*://|(?:git|hg|svn|bzr)\+)`)

func isAddress(lower string) bool { return address.MatchString(lower) }

// note notes a requirement.
func note(w *manifest.Wants, file string, number int, text string) {
	r, ok := parseRequirement(text)
	switch {
	case !ok:
		w.LeaveOut(file, number, text, "it is no requirement that this version can read")
	case r.url != "":
		w.LeaveOut(file, number, text, "it comes from an address, so its name is not allowed from the registry")
		w.Keep(r.name)
	default:
		w.Add(r.name, file, number)
	}
}

// silent are options that name no package and no place of one.
func silent() []string {
	return []string{
		"-c", "--constraint", "--build-constraint", "--no-binary", "--only-binary", "--prefer-binary", "--require-hashes", "--pre", "--all-releases", "--only-final", "--use-feature", "--use-pep517", "--trusted-host",
		"--config-settings", "-C", "--global-option", "--hash",
	}
}

// readOption follows an option of a requirements file.
func readOption(w *manifest.Wants, m manifest.Text, l line) error {
	name, value := cutOption(l.text)
	switch {
	case slices.Contains([]string{"-r", "--requirement", "--requirements"}, name):
		if isAddress(strings.ToLower(value)) || path.IsAbs(value) {
			w.LeaveOut(m.File, l.number, l.text, "it is not a file of the project")
			return nil
		}
		file := path.Join(path.Dir(m.File), value)
		found, err := w.Include(requirementsFormat(), file)
		if err == nil && !found {
			w.LeaveOut(m.File, l.number, l.text, "there is no such file")
		}
		return err
	case slices.Contains([]string{"-e", "--editable"}, name):
		return editable(w, m, l, value)
	case slices.Contains(silent(), name):
	case slices.Contains([]string{"-i", "--index-url", "--pypi-url", "--extra-index-url", "-f", "--find-links", "--no-index"}, name):
		w.LeaveOut(m.File, l.number, name, "another registry is named in the configuration file, not here")
	default:
		w.LeaveOut(m.File, l.number, l.text, "this option is not known here")
	}
	return nil
}

// cutOption parts an option from its value: -rfile, -r file, --requirement=file.
func cutOption(text string) (name, value string) {
	if strings.HasPrefix(text, "--") {
		end := strings.IndexAny(text, "="+blanks)
		if end < 0 {
			return text, ""
		}
		return text[:end], unquoted(text[end+1:])
	}
	if len(text) < 2 {
		return text, ""
	}
	return text[:2], unquoted(text[2:])
}

func unquoted(value string) string {
	value = strings.Trim(value, "="+blanks)
	if len(value) > 1 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		return value[1 : len(value)-1]
	}
	return value
}

// editable reads what a project of its own requires.
func editable(w *manifest.Wants, m manifest.Text, l line, value string) error {
	value, _, _ = strings.Cut(value, "[") // its extras: all are read
	value = strings.TrimPrefix(value, "file:")
	if isAddress(strings.ToLower(value)) || path.IsAbs(value) {
		w.LeaveOut(m.File, l.number, l.text, "it is not a directory of the project")
		return nil
	}
	return readProject(w, path.Join(path.Dir(m.File), value))
}

// readProject reads what a directory's own project requires.
func readProject(w *manifest.Wants, dir string) error {
	for _, f := range []manifest.Format{pyprojectFormat(), setupFormat()} {
		if _, err := w.Include(f, path.Join(dir, f.Name)); err != nil {
			return err
		}
	}
	return nil
}
