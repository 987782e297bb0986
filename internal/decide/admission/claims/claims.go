// Package claims reads what a command asks for: which packages an install names, and in
// which versions. It is what the agent says, only ever recorded as such, so what is not
// understood is left out. Which command is an install the package clients say.
package claims

import (
	"iter"
	"path"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Clients tells of the words of a command which ecosystem a package client's is of, and what
// follows the install itself, if it is one; "" for any other command. Nil knows no client.
type Clients func(words []string) (pkgref.Ecosystem, []string)

// Read reads which versions a command asks for, also inside `sh -c`.
func (c Clients) Read(argv []string) map[pkgref.Ref]string {
	found := map[pkgref.Ref]string{}
	for ecosystem, word := range c.Words(argv) {
		if p, specifier, ok := Parse(ecosystem, word); ok {
			found[p] = specifier
		}
	}
	return found
}

// IsClient tells whether a command is a package client's, and no shell's around one.
func (c Clients) IsClient(argv []string) bool {
	if c == nil {
		return false
	}
	ecosystem, _ := c(argv)
	return ecosystem != ""
}

// IsOne tells whether a command is one command of a package client, alone or in a shell's -c argument, where it may
// follow a cd.
func (c Clients) IsOne(argv []string) bool {
	if c == nil {
		return false
	}
	found := 0
	for words := range simpleCommands(argv) {
		if len(words) == 0 || words[0] == "cd" {
			continue
		}
		if ecosystem, _ := c(words); ecosystem == "" {
			return false
		}
		found++
	}
	return found == 1
}

// Words yields what follows the installs of a command, word by word.
func (c Clients) Words(argv []string) iter.Seq2[pkgref.Ecosystem, string] {
	return func(yield func(pkgref.Ecosystem, string) bool) {
		if c == nil {
			return
		}
		for words := range simpleCommands(argv) {
			ecosystem, rest := c(words)
			if ecosystem == "" {
				continue
			}
			for _, word := range rest {
				if !yield(ecosystem, word) {
					return
				}
			}
		}
	}
}

// simpleCommands yields the command, or those of a shell's -c argument.
func simpleCommands(argv []string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		if len(argv) < 3 || !isShell(argv[0]) {
			yield(argv)
			return
		}
		for i, arg := range argv[1 : len(argv)-1] {
			if strings.HasPrefix(arg, "-") && strings.HasSuffix(arg, "c") {
				for _, words := range splitShell(argv[i+2]) {
					if !yield(words) {
						return
					}
				}
				return
			}
		}
	}
}

func isShell(program string) bool {
	switch path.Base(program) {
	case "sh", "bash", "dash", "zsh":
		return true
	}
	return false
}

// splitShell splits a shell's text into commands and words, as far as quotes,
// white space and separators go.
func splitShell(text string) [][]string {
	var commands [][]string
	var words []string
	var word strings.Builder
	started, quote := false, byte(0)
	endWord := func() {
		if started {
			words = append(words, word.String())
		}
		word.Reset()
		started = false
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, started = c, true
		case c == ' ' || c == '\t':
			endWord()
		case strings.IndexByte("\n;&|()", c) >= 0:
			endWord()
			commands = append(commands, words)
			words = nil
		default:
			word.WriteByte(c)
			started = true
		}
	}
	endWord()
	return append(commands, words)
}

// Parse reads a name with a specifier.
func Parse(ecosystem pkgref.Ecosystem, word string) (pkgref.Ref, string, bool) {
	if ecosystem == "" || len(word) > 512 || word == "" || word[0] == '-' {
		return pkgref.Ref{}, "", false
	}
	between := ecosystem.Traits().Between
	if between == "" {
		return parseOperators(ecosystem, word)
	}
	at := strings.Index(word[1:], between) + 1 // a scope begins with one
	if at <= 0 {
		return pkgref.Ref{}, "", false
	}
	name, specifier := pkgref.Alias(ecosystem, word[:at], word[at+len(between):])
	p, err := pkgref.New(ecosystem, name, "")
	if err != nil || p.Name != name || !readsClaim(ecosystem, specifier) {
		return pkgref.Ref{}, "", false
	}
	return p, specifier, true
}

// ParseName reads the name of what a command asks for in words that are no specifier:
// alone, with extras, with a tag.
func ParseName(ecosystem pkgref.Ecosystem, word string) (pkgref.Ref, bool) {
	if ecosystem == "" || len(word) > 512 || word == "" || word[0] == '-' {
		return pkgref.Ref{}, false
	}
	end := strings.IndexAny(word[1:], "@[=<>!~; ")
	if end >= 0 {
		word = word[:end+1]
	}
	p, err := pkgref.New(ecosystem, word, "")
	return p, err == nil
}

// readsClaim tells a version, or a range where there are such, from a tag.
func readsClaim(ecosystem pkgref.Ecosystem, specifier string) bool {
	if ecosystem.Traits().AsksVersions {
		_, ok := pkgref.ParseVersion(ecosystem, specifier)
		return ok
	}
	_, ok := pkgref.ParseRange(ecosystem, specifier)
	return ok && specifier != ""
}

// parseOperators reads "requests[socks]==2.31.0" and other specifiers.
func parseOperators(ecosystem pkgref.Ecosystem, word string) (pkgref.Ref, string, bool) {
	at := strings.IndexAny(word, "=<>!~")
	if at <= 0 || strings.ContainsAny(word, "@/;\\") {
		return pkgref.Ref{}, "", false
	}
	name, _, _ := strings.Cut(word[:at], "[")
	specifier := strings.TrimSpace(word[at:])
	p, err := pkgref.New(ecosystem, strings.TrimSpace(name), "")
	if _, ok := pkgref.ParseRange(ecosystem, specifier); err != nil || !ok {
		return pkgref.Ref{}, "", false
	}
	return p, specifier, true
}

// Meets says whether a release is one that a claimed specifier asks for.
func Meets(specifier string, p pkgref.Ref) bool {
	switch r, ok := pkgref.ParseRange(p.Ecosystem, specifier); {
	case specifier == "":
		return false
	case p.Ecosystem.Traits().AsksVersions:
		return specifier == p.Version
	default:
		v, readable := pkgref.ParseVersion(p.Ecosystem, p.Version)
		return ok && readable && r.Match(v)
	}
}
