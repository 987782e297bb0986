package pip

import (
	"path"
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// PartFolders implements installer.PartReader.
func (client) PartFolders() []string {
	return []string{".", "requirements", "tests", "test", "docs", "doc"}
}

// partFile is the name of a requirements file of a part, as projects have them: requirements-dev.txt, dev.requirements.txt.
var partFile = regexp.MustCompile(`(?i)^(?:.*[-_.])?requirements(?:[-_.].*)?\.txt$`)

// sourceFile is the name of what a requirements file is compiled from.
var sourceFile = regexp.MustCompile(`(?i)^(?:.*[-_.])?requirements(?:[-_.].*)?\.in$`)

// PartManifest implements installer.PartReader: requirements files by name, and what else is in their directory. Constraints and what
// these files are compiled from ask for nothing, and may name the registry of all the others.
func (client) PartManifest(file string) (manifest.Format, bool) {
	dir, base := path.Split(file)
	lower := strings.ToLower(base)
	inFolder := dir == "requirements/"
	switch {
	case strings.Contains(lower, "constraint") && strings.HasSuffix(lower, ".txt"):
		return partFormat(constraintsFormat()), true
	case sourceFile.MatchString(base) || (inFolder || strings.Contains(lower, "constraint")) && strings.HasSuffix(lower, ".in"):
		return sourceFormat(), true
	}
	return partFormat(requirementsOf(false)), partFile.MatchString(base) || inFolder && strings.HasSuffix(lower, ".txt")
}

// startOfOption begins a line of options; a line with another hyphen is a ruler or one of a list in prose.
var startOfOption = regexp.MustCompile(`^--?[A-Za-z]`)

// sourceFormat reads what a requirements file is compiled from: options alone, and the names of what comes from a place.
func sourceFormat() manifest.Format {
	return manifest.Format{Name: "requirements.in", Read: func(w *manifest.Wants, m manifest.Text) error {
		for _, l := range joined(m) {
			name, value := cutOption(l.text)
			var err error
			switch {
			case name == "-e", wholeName(name) == "--editable":
				err = keepPlace(w, m, l, value)
			case !startOfOption.MatchString(l.text):
				err = keepPlace(w, m, l, l.text)
			default:
				err = readOptions(w, m, l, sourceFormat())
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

// keepPlace keeps the name of what a line has from a place, since other lines may ask for it by that, and asks for nothing. A place
// that says no name withholds none: the line may be prose.
func keepPlace(w *manifest.Wants, m manifest.Text, l requirementLine, text string) error {
	if r, _ := parseRequirement(text); r.url != "" {
		noteAnyVersion(w, m.File, l.number, text)
		return nil
	}
	if why := otherPlace(text); why != "" && keepNames(w, text) {
		w.LeaveOut(m.File, l.number, l.text, why)
		return nil
	}
	place := placeOfLine(text)
	if !isDirectory(text) || strings.ContainsAny(place, blanks) || path.IsAbs(place) || strings.HasPrefix(place, "~") {
		return nil
	}
	for _, dir := range []string{path.Clean(place), path.Join(path.Dir(m.File), place)} { // as readDirectory has it
		if isOutside(dir) || !isProject(w, dir) {
			continue
		}
		name, err := nameOf(w, dir)
		if err != nil {
			return err
		}
		w.Keep(name)
	}
	return nil
}

// partFormat reads a file that nothing names as another format does. One with a line that pip would not read is some other text, of which
// a word that stands alone is no package: it asks for nothing, and may still name a registry.
func partFormat(f manifest.Format) manifest.Format {
	return manifest.Format{Name: f.Name, Read: func(w *manifest.Wants, m manifest.Text) error {
		for _, l := range joined(m) {
			if isOddLine(l.text) {
				w.LeaveOut(m.File, l.number, l.text, "it is no requirement that this version can read, so that nothing is taken from this file")
				return sourceFormat().Read(w, m)
			}
		}
		return f.Read(w, m)
	}}
}

// isOddLine tells of a line of a requirements file whether it is neither an option, nor a requirement, nor a place.
func isOddLine(text string) bool {
	if at := optionsOfALine.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	if startOfOption.MatchString(text) {
		return false
	}
	if _, ok := parseRequirement(text); ok || otherPlace(text) != "" {
		return false
	}
	return !isDirectory(text) || strings.ContainsAny(placeOfLine(text), blanks) // a sentence may have a slash, too
}
