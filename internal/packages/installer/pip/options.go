package pip

import (
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// silent are options that name no package and no place of one.
func silent() []string {
	return []string{
		"--no-binary", "--only-binary", "--prefer-binary", "--require-hashes", "--pre", "--all-releases", "--only-final", "--use-feature", "--use-pep517", "--trusted-host",
		"--config-settings", "-C", "--global-option", "--hash",
	}
}

// registryOptions are those that name where packages come from.
func registryOptions() []string {
	return []string{"-i", "--index-url", "--pypi-url", "--extra-index-url", "-f", "--find-links", "--no-index"}
}

func requirementsOptions() []string { return []string{"-r", "--requirement", "--requirements"} }

func constraintsOptions() []string { return []string{"-c", "--constraint", "--build-constraint"} }

// nextOption begins another option of the line. One in quotes is taken for an option too, which leaves out more.
var nextOption = regexp.MustCompile(`\s["']?-`)

// readOptions follows the options of a line, of which pip reads several. inner is how other requirements files are read from it.
func readOptions(w *manifest.Wants, m manifest.Text, l requirementLine, inner manifest.Format) error {
	if isShell(l.text) {
		w.Withhold(m.File, l.number, l.text, "its quotes, backslashes or variables are not read, and may name a registry")
	}
	text := l.text
	for text != "" {
		one, end := text, len(text)
		if at := nextOption.FindStringIndex(text); at != nil {
			one, end = text[:at[0]], at[1]-len("-")
		}
		text = text[end:]
		if err := readOption(w, m, requirementLine{l.number, strings.Trim(one, blanks)}, inner); err != nil {
			return err
		}
	}
	return nil
}

// isShell tells of a line of options whether pip reads other words in it than those between blanks: it joins what is quoted, takes
// backslashes off, and puts variables in. A value that is quoted as a whole is the same without.
func isShell(text string) bool {
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(blanks, c) }) {
		if name, value, is := strings.Cut(word, "="); is && strings.HasPrefix(name, "--") {
			word = value
		}
		if word = unquoted(word); strings.ContainsAny(word, "\"'\\") || strings.Contains(word, "${") {
			return true
		}
	}
	return false
}

func readOption(w *manifest.Wants, m manifest.Text, l requirementLine, inner manifest.Format) error {
	name, value := cutOption(l.text)
	name = wholeName(name)
	switch {
	case slices.Contains(requirementsOptions(), name):
		return include(w, m, l, inner, value)
	case slices.Contains(constraintsOptions(), name):
		return include(w, m, l, constraintsFormat(), value)
	case slices.Contains([]string{"-e", "--editable"}, name) && inner.Name == constraintsFormat().Name:
		noteAddress(w, m.File, l.number, value)
	case slices.Contains([]string{"-e", "--editable"}, name):
		return readDirectory(w, m, l, value)
	case slices.Contains(silent(), name):
	case slices.Contains([]string{"-f", "--find-links", "--no-index"}, name):
		w.Withhold(m.File, l.number, name, manifest.OtherRegistry)
	case slices.Contains(registryOptions(), name):
		w.Registry(m.File, l.number, name, value)
	default:
		w.Withhold(m.File, l.number, l.text, "this option is not known here, and may name a registry")
	}
	return nil
}

// wholeName is that of an option that is written by its beginning, as pip lets people do. One that may be a place is one.
func wholeName(name string) string {
	all := slices.Concat(registryOptions(), requirementsOptions(), constraintsOptions(), []string{"--editable"}, silent())
	if !strings.HasPrefix(name, "--") || len(name) == len("--") || slices.Contains(all, name) {
		return name
	}
	for _, whole := range all {
		if strings.HasPrefix(whole, name) {
			return whole
		}
	}
	return name
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
