package pip

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// requirementsFormat reads requirements files, as pip does.
func requirementsFormat() manifest.Format {
	return manifest.Format{Name: RequirementsFile, Read: func(w *manifest.Wants, m manifest.Text) error {
		return readRequirements(w, m, !hasOtherLock(w))
	}}
}

// requirementsOf reads those that another file names. holds: their ranges are those of all that is installed; those of a
// part that not everybody installs are not.
func requirementsOf(holds bool) manifest.Format {
	return manifest.Format{Name: RequirementsFile, Read: func(w *manifest.Wants, m manifest.Text) error {
		return readRequirements(w, m, holds)
	}}
}

// placeOfLine is the directory of a line that names one, without its fragment, its marker and its extras, all of which are read.
func placeOfLine(text string) string {
	place, _, _ := strings.Cut(text, "#")
	place, _, _ = strings.Cut(place, ";")
	place, _, _ = strings.Cut(place, "[")
	return strings.TrimPrefix(strings.Trim(place, blanks), "file:")
}

// hasOtherLock tells whether the project is also installed from the lockfile of another client, whose releases are not
// held to the ranges of a requirements file. One that can't be read is there.
func hasOtherLock(w *manifest.Wants) bool {
	return w.HasAny("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml")
}

// requirementLine is one of a requirements file, with those that a backslash joins to it.
type requirementLine struct {
	number int // of its first
	text   string
}

var comment = regexp.MustCompile(`(^|\s+)#.*$`)

// joined are the lines of a file, without comments.
func joined(text manifest.Text) (all []requirementLine) {
	var open strings.Builder
	first := 0 // line of what is open
	for number, one := range text.Lines() {
		isComment := strings.HasPrefix(strings.TrimLeft(one, blanks), "#")
		if first == 0 {
			first = number
		} else if isComment { // pip has a comment end what was joined
			one = " " + strings.TrimLeft(one, blanks)
		}
		if rest, goesOn := strings.CutSuffix(one, `\`); goesOn && !isComment {
			open.WriteString(rest)
			continue
		}
		open.WriteString(one)
		all = append(all, requirementLine{first, open.String()})
		open.Reset()
		first = 0
	}
	if first != 0 {
		all = append(all, requirementLine{first, open.String()})
	}
	for i := range all {
		all[i].text = strings.Trim(comment.ReplaceAllString(all[i].text, ""), blanks)
	}
	return slices.DeleteFunc(all, func(l requirementLine) bool { return l.text == "" })
}

// optionsOfALine are those that may follow a requirement, and begin what says nothing of its name.
var optionsOfALine = regexp.MustCompile(`\s--?[A-Za-z]`)

func readRequirements(w *manifest.Wants, m manifest.Text, holds bool) error {
	for _, l := range joined(m) {
		if strings.HasPrefix(l.text, "-") {
			if err := readOptions(w, m, l, requirementsOf(holds)); err != nil {
				return err
			}
			continue
		}
		text := l.text
		if at := optionsOfALine.FindStringIndex(text); at != nil {
			text = text[:at[0]]
		}
		if r, _ := parseRequirement(text); r.url != "" {
			noteAnyVersion(w, m.File, l.number, text)
			continue
		}
		if isDirectory(text) {
			if err := readDirectory(w, m, l, text); err != nil {
				return err
			}
			continue
		}
		if why := otherPlace(text); why != "" {
			leaveOut(w, m.File, l.number, text, why)
			continue
		}
		noteAmong(w, m.File, l.number, text, holds)
	}
	return nil
}

// isDirectory tells of a line without a name whether pip takes it for a directory: an address without a host, or what has a slash.
func isDirectory(text string) bool {
	text, _, _ = strings.Cut(strings.ToLower(text), ";")
	text = strings.Trim(text, blanks)
	return !isAddress(text) && !packed.MatchString(text) && !strings.Contains(text, "${") &&
		(strings.HasPrefix(text, "file:") || strings.HasPrefix(text, ".") || strings.Contains(text, "/"))
}

// otherPlace tells why a line of a requirements file without a name asks for nothing of a registry.
func otherPlace(text string) string {
	text, _, _ = strings.Cut(text, ";") // its marker
	text = strings.Trim(text, blanks)
	lower := strings.ToLower(text)
	switch {
	case strings.HasPrefix(lower, "file:"), strings.HasPrefix(text, "."), strings.HasPrefix(text, "/"), strings.HasPrefix(text, "~"):
		return "it is a file or directory of your own"
	case isAddress(lower):
		return "it is an address, and nothing is allowed by one"
	case packed.MatchString(lower):
		return "it is a file of your own"
	case strings.Contains(text, "${"):
		return "it has a variable, whose value is not known here"
	}
	return ""
}

var address = regexp.MustCompile(`^(?:[a-z][a-z0-9+.-]*://|(?:git|hg|svn|bzr)\+)`)

func isAddress(lower string) bool { return address.MatchString(lower) }

// archives are the endings of those that pip installs from.
const archives = `whl|zip|tar\.gz|tgz|tar\.bz2|tbz|tar\.xz|txz|tar\.lz|tar\.lzma|tlz|tar`

var (
	packed = regexp.MustCompile(`\.(?:` + archives + `)(?:\[[^\]]*\])?$`)
	egg    = regexp.MustCompile(`[#&]egg=([A-Za-z0-9][A-Za-z0-9._-]*)`)
	// ofFile is the name in that of a wheel or of a source archive.
	ofFile = regexp.MustCompile(`(?:^|[/\s])([A-Za-z0-9][A-Za-z0-9._-]*?)-[0-9][^/]*\.(?i:` + archives + `)(?:$|[#?\[;\s])`)
)

// leaveOut leaves out what comes from elsewhere, and keeps the name that it says it has: other lines may ask for it by that. One
// that says none may have any.
func leaveOut(w *manifest.Wants, file string, number int, text, why string) {
	if !keepNames(w, text) {
		why += ", and its name is not known, so that any name here may be its"
		if isAddress(strings.ToLower(text)) {
			why += "; NAME @ ADDRESS says it"
		}
		w.Withhold(file, number, text, why)
		return
	}
	w.LeaveOut(file, number, text, why)
}

// keepNames keeps those that a place has in it, if it has one.
func keepNames(w *manifest.Wants, text string) (has bool) {
	for _, form := range []*regexp.Regexp{egg, ofFile} {
		if found := form.FindStringSubmatch(text); found != nil {
			w.Keep(found[1])
			has = true
		}
	}
	return has
}

// noteAnyVersion notes a requirement of any version: one of a build, which has its own releases beside those that a project is installed
// with, or of a part that not everybody installs.
func noteAnyVersion(w *manifest.Wants, file string, number int, text string) {
	noteAmong(w, file, number, text, false)
}

// noteRange notes a requirement that holds for whatever is installed with it.
func noteRange(w *manifest.Wants, file string, number int, text string) {
	noteAmong(w, file, number, text, true)
}

func noteAmong(w *manifest.Wants, file string, number int, text string, holds bool) {
	r, ok := parseRequirement(text)
	named := r.among
	if r.among == "" && ok { // under a condition
		named = r.under
	}
	if _, understood := pkgref.ParseRange(pkgref.Python, r.among); !holds || !understood {
		r.among = ""
	}
	switch {
	case !ok:
		keepNames(w, text)
		w.LeaveOut(file, number, text, "it is no requirement that this version can read")
	case r.url != "":
		w.LeaveOut(file, number, text, "it comes from an address, so its name is not allowed from the registry")
		w.Keep(r.name)
	default:
		w.AddRange(r.name, r.among, file, number)
		w.Name(r.name, named)
	}
}

// include reads another file of the project.
func include(w *manifest.Wants, m manifest.Text, l requirementLine, f manifest.Format, value string) error {
	file, why := path.Join(path.Dir(m.File), value), ""
	switch {
	case isAddress(strings.ToLower(value)), path.IsAbs(value):
		why = "it is not a file of the project"
	case isOutside(file):
		why = "it lies outside of the project"
	default:
		found, err := w.Include(f, file)
		if err != nil || found {
			return err
		}
		why = "there is no such file"
	}
	w.Withhold(m.File, l.number, l.text, why+", so that it may name a registry")
	return nil
}

func isOutside(file string) bool { return file == ".." || strings.HasPrefix(file, "../") }

// constraintsFormat reads what pip has for constraints: they ask for nothing, but say of names that they come from an address, and may
// name registries.
func constraintsFormat() manifest.Format {
	return manifest.Format{Name: "constraints.txt", Read: func(w *manifest.Wants, m manifest.Text) error {
		for _, l := range joined(m) {
			if strings.HasPrefix(l.text, "-") {
				if err := readOptions(w, m, l, constraintsFormat()); err != nil {
					return err
				}
				continue
			}
			noteAddress(w, m.File, l.number, l.text)
		}
		return nil
	}}
}

// noteAddress notes a constraint if it says where a package comes from.
func noteAddress(w *manifest.Wants, file string, number int, text string) {
	if r, _ := parseRequirement(text); r.url != "" {
		noteAnyVersion(w, file, number, text)
	} else if why := otherPlace(text); why != "" {
		leaveOut(w, file, number, text, why)
	}
}

// readDirectory reads what a project in a directory of this one requires.
func readDirectory(w *manifest.Wants, m manifest.Text, l requirementLine, value string) error {
	if r, _ := parseRequirement(value); r.url != "" { // NAME @ ADDRESS, as uv has it
		noteAnyVersion(w, m.File, l.number, value)
		return nil
	}
	_, fragment, _ := strings.Cut(value, "#")
	place := placeOfLine(value)
	dir := path.Join(path.Dir(m.File), place)
	elsewhere := isAddress(strings.ToLower(place)) || path.IsAbs(place) || strings.HasPrefix(place, "~")
	if here := path.Clean(place); !elsewhere && here != dir && !isOutside(here) && isProject(w, here) { // clients go from where they are started, whichever file says it
		if !isOutside(dir) && isProject(w, dir) { // some from the file: either may be the one, and has its name
			if err := readFolder(w, m, l, dir); err != nil {
				return err
			}
		}
		dir = here
	}
	why := ""
	switch {
	case elsewhere:
		why = "it is not a directory of the project"
	case isOutside(dir):
		why = "it lies outside of the project"
	}
	if why != "" {
		if !isAddress(strings.ToLower(place)) {
			w.NoteFolder(m.File, place)
		}
		leaveOut(w, m.File, l.number, l.text, why)
		return nil
	}
	if fragment != "" {
		keepNames(w, value)
	}
	return readFolder(w, m, l, dir)
}

// readFolder reads what the project in a directory requires, and keeps its name.
func readFolder(w *manifest.Wants, m manifest.Text, l requirementLine, dir string) error {
	found, err := readProject(w, dir)
	if err != nil {
		return err
	}
	if isProject(w, dir) {
		err = keepName(w, m.File, l.number, l.text, dir)
	}
	if err == nil && !found {
		w.LeaveOut(m.File, l.number, l.text, "it has no pyproject.toml and no setup.cfg, so what it asks for is not known")
	}
	return err
}

// isProject tells whether a directory has one of the files by which a project is built.
func isProject(w *manifest.Wants, dir string) bool {
	return slices.ContainsFunc([]string{"pyproject.toml", "setup.cfg", "setup.py"}, func(name string) bool { return w.Has(path.Join(dir, name)) })
}

// readProject reads what a directory's own project requires. found is false where no file says that.
func readProject(w *manifest.Wants, dir string) (found bool, err error) {
	for _, f := range []manifest.Format{pyprojectFormat(), setupFormat()} {
		has, err := w.Include(f, path.Join(dir, f.Name))
		if err != nil {
			return found, err
		}
		found = found || has
	}
	return found, nil
}
