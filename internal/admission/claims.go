package admission

import (
	"iter"
	"path"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref/pep440"
)

// claims reads which versions a command asks for: `pip install requests==2.31.0`
// and `uv add`, also inside `sh -c`. It is what the agent says, only ever
// recorded as such, so what is not understood is left out.
func claims(argv []string) map[pkgref.Ref]string {
	found := map[pkgref.Ref]string{}
	for words := range simpleCommands(argv) {
		rest, ok := installArguments(words)
		if !ok {
			continue
		}
		for _, word := range rest {
			if p, specifier, ok := parseClaim(word); ok {
				found[p] = specifier
			}
		}
	}
	return found
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

// installArguments returns what follows `pip install` and its like.
func installArguments(words []string) ([]string, bool) {
	if len(words) == 0 {
		return nil, false
	}
	program := strings.TrimRight(path.Base(words[0]), "0123456789.")
	words = words[1:]
	if program == "python" && len(words) > 2 && words[0] == "-m" {
		program, words = words[1], words[2:]
	}
	if program == "uv" && len(words) > 0 && words[0] == "pip" {
		program, words = "pip", words[1:]
	}
	for i, w := range words {
		if strings.HasPrefix(w, "-") {
			continue
		}
		installs := program == "pip" && (w == "install" || w == "download" || w == "wheel") || program == "uv" && w == "add"
		return words[i+1:], installs
	}
	return nil, false
}

// parseClaim reads "requests[socks]==2.31.0" and other names with a specifier.
func parseClaim(word string) (pkgref.Ref, string, bool) {
	at := strings.IndexAny(word, "=<>!~")
	if at <= 0 || len(word) > 512 || strings.ContainsAny(word, "@/;\\") || word[0] == '-' {
		return pkgref.Ref{}, "", false
	}
	name, _, _ := strings.Cut(word[:at], "[")
	specifier := strings.TrimSpace(word[at:])
	p, err := pkgref.New(pkgref.Python, strings.TrimSpace(name), "")
	if _, ok := pep440.ParseSpecifier(specifier); err != nil || !ok {
		return pkgref.Ref{}, "", false
	}
	return p, specifier, true
}

// claimMeets says whether a version is one that a claimed specifier asks for.
func claimMeets(specifier, version string) bool {
	s, ok := pep440.ParseSpecifier(specifier)
	v, valid := pep440.Parse(version)
	return specifier != "" && ok && valid && s.Match(v)
}
