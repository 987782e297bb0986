package pip

import (
	"slices"
	"strings"
)

// KeepHint implements installer.Keeper. A program that is named with its path may be one of another environment, which is
// kept where the project is.
func (client) KeepHint(argv []string, line string, writable []string) string {
	program, words := Module(argv)
	if program != "pip" || strings.Contains(argv[0], "/") {
		return ""
	}
	return KeepHint(words, line, writable)
}

// KeepHint gives installer.Keeper's hint for the words behind the name of a program that installs as pip does.
func KeepHint(words []string, line string, writable []string) string {
	if len(words) == 0 || words[0] != "install" || slices.ContainsFunc(words, mayGoElsewhere) {
		return ""
	}
	if slices.ContainsFunc(writable, func(place string) bool { return strings.HasSuffix(place, "/.venv") }) {
		return "" // docs/templates.md keeps the environment itself so
	}
	together := "'" + strings.ReplaceAll(line+" && python3 ...", "'", `'\''`) + "'"
	hint := "pip's environment was the sandbox's and is gone with it; use what it installs in the same run: -- sh -c " + together
	if len(writable) > 0 {
		hint += "; or keep it in the mount, by a first run of -- sh -c 'python3 -m venv .venv && .venv/bin/pip install ...', and later ones of -- .venv/bin/python ..."
	}
	return hint
}

// mayGoElsewhere tells of an option that isn't known to leave pip and uv to install into the environment that they have
// anyway: whatever it is, how it is shortened, and which ones are written as one word, is pip's to read, and no hint is
// better than a false one.
func mayGoElsewhere(word string) bool {
	name, _, _ := strings.Cut(word, "=")
	return strings.HasPrefix(word, "-") && !slices.Contains([]string{
		"-r", "--requirement", "--requirements", "-c", "--constraint", "--constraints", "-e", "--editable", "-U", "--upgrade", "-q", "--quiet",
		"-v", "--verbose", "--no-cache-dir", "--no-cache", "--no-deps", "--pre", "--require-hashes", "--only-binary", "--no-binary",
		"--prefer-binary", "--progress-bar", "--no-input", "--disable-pip-version-check", "--system", "--break-system-packages",
	}, name)
}
