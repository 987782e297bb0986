package policy

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// widenings are the insertions that may add a key (s.key) to the entry of s, the nicest
// first. Which of them means that is for addEntry to find out.
func widenings(document []byte, root *yaml.Node, s suggestion) []insertion {
	key := s.key + ": true"
	var tries []insertion
	for _, n := range childOf(childOf(root, "allowed_packages"), string(s.ecosystem)).Content {
		if n.Line != s.within || !namesPackage(n, s) {
			continue
		}
		if !isFlow(n) {
			tries = append(tries, insertion{line: lastLine(n) + 1, text: strings.Repeat(" ", n.Column-1) + key + "\n"})
			continue
		}
		tries = append(tries, beforeBraces(document, n.Content[len(n.Content)-1], ", "+key)...)
		tries = append(tries, insertFirst(n, key))
	}
	return tries
}

// beforeBraces puts text before each brace behind a flow mapping's last value, one of
// which ends the mapping: that has no position of its own.
func beforeBraces(document []byte, last *yaml.Node, text string) []insertion {
	lines := strings.SplitAfter(string(document), "\n")
	if last.Line > len(lines) {
		return nil
	}
	var tries []insertion
	line := []rune(lines[last.Line-1])
	for at := last.Column; at < len(line); at++ {
		if line[at] == '}' {
			end := []rune(strings.TrimRight(string(line[:at]), " "))
			tries = append(tries, insertion{line: last.Line, column: len(end) + 1, text: text})
		}
	}
	return tries
}

// namesPackage reports whether an element of a list is about the package of s.
func namesPackage(element *yaml.Node, s suggestion) bool {
	name := childOf(element, "name")
	if name == nil {
		return false
	}
	ref, err := pkgref.New(s.ecosystem, name.Value, "")
	return err == nil && ref.Name == s.name
}

// sameEntries reports whether the allowlists differ in nothing but in the key that the entry
// of s gets.
func (p *Policy) sameEntries(before *Policy, s suggestion) bool {
	for key, entries := range p.packages.allowed {
		old := before.packages.allowed[key]
		if len(old) != len(entries) {
			return false
		}
		for i, e := range entries {
			o := old[i]
			widened := key == packageKey{s.ecosystem, s.name} && o.line == s.within && o.versionText == s.version && o.limitText == s.limit
			o.withDependencies = o.withDependencies || widened && s.key == keyDependencies
			o.installScripts = o.installScripts || widened && s.key == keyScripts
			if e.versionText != o.versionText || e.limitText != o.limitText || e.withDependencies != o.withDependencies ||
				e.prereleases != o.prereleases || e.installScripts != o.installScripts || !slices.Equal(e.extras, o.extras) {
				return false
			}
		}
	}
	return true
}
