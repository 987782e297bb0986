package pip

import (
	"slices"
	"strings"
)

// KeepHint implements installer.Keeper.
func (client) KeepHint(argv []string, line string, writable []string) string {
	program, words := Module(argv)
	if program != "pip" {
		return ""
	}
	return KeepHint(words, line, writable)
}

// KeepHint is installer.Keeper's, for the words behind the name of a program that installs as pip does.
func KeepHint(words []string, line string, writable []string) string {
	if len(words) == 0 || words[0] != "install" || slices.ContainsFunc(words, goesElsewhere) {
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

// goesElsewhere tells of an option that has pip install into another place than its environment, or nowhere.
func goesElsewhere(word string) bool {
	name, _, _ := strings.Cut(word, "=")
	return strings.HasPrefix(word, "-t") || slices.Contains([]string{"--target", "--prefix", "--root", "--python", "--dry-run"}, name)
}
