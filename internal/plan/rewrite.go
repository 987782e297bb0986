package plan

import (
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Plannable says which commands can be planned.
const Plannable = "pip install, python3 -m pip install, uv pip install, uv add, uv sync, uv lock, " +
	"npm install, npm ci, pnpm install, pnpm add, go get, go mod download and go install"

// Client names the program whose result is read.
type Client string

// The clients.
const (
	Pip       Client = "pip"
	UVPip     Client = "uv pip"
	UVProject Client = "uv"
	NPM       Client = "npm"
	PNPM      Client = "pnpm"
	GoGet     Client = "go get"
	GoModules Client = "go mod download"
)

// Project is where the sandbox shows the project that a command is for.
type Project struct {
	Top  string // absolute: the mount that covers it; "": nothing is mounted there
	Here string // where the command starts, relative to Top
}

// Rewrite is a command for the sandbox.
type Rewrite struct {
	Client Client
	Argv   []string
}

// Of rewrites an install command. fault.ErrInvalid says in a sentence why a
// command can't be planned.
func Of(argv []string, p Project) (Rewrite, error) {
	if len(argv) == 0 {
		return Rewrite{}, fault.Invalid("no command given; these can be planned: %s", Plannable)
	}
	words, own := argv[1:], argv[:1] // own: how pip itself is called
	program := strings.TrimRight(path.Base(argv[0]), "0123456789.")
	if program == "python" && len(words) > 1 && words[0] == "-m" && words[1] == "pip" {
		program, words, own = "pip", words[2:], argv[:3]
	}
	word := ""
	if len(words) > 0 {
		word, words = words[0], words[1:]
	}
	switch {
	case program == "pip" && word == "install":
		return pip(own, words, p)
	case program == "uv" && word == "pip" && len(words) > 0 && words[0] == "install":
		return uvPip(words[1:], p)
	case program == "uv" && slices.Contains([]string{"add", "sync", "lock"}, word):
		return uvProject(word, words, p)
	case program == "npm" && slices.Contains([]string{"install", "i", "add"}, word):
		return npm(words, p)
	case program == "npm" && word == "ci":
		return npmCI(words, p)
	case program == "pnpm" && slices.Contains([]string{"install", "i", "add"}, word):
		return pnpm(word, words, p)
	case program == "go" && word == "get":
		return goGet(words, p)
	case program == "go" && word == "install":
		return goInstall(words, p)
	case program == "go" && word == "mod" && len(words) > 0 && words[0] == "download":
		return goModDownload(words[1:], p)
	}
	return Rewrite{}, fault.Invalid("%q can't be planned; these can: %s", clip(strings.Join(argv, " ")), Plannable)
}

// options is what a client's command knows of its options. What is not in it
// is not understood, and such a command is refused rather than planned wrong.
type options struct {
	values []string // take a value
	flags  []string // take none
}

// option is one option of a command, or one of its other words.
type option struct {
	name  string // "--index-url"; "" for a word that is no option
	value string // of an option that takes one, or the word
}

// words is the option as it is written.
func (o option) words() []string {
	switch {
	case o.name == "":
		return []string{o.value}
	case o.value == "":
		return []string{o.name}
	case strings.HasPrefix(o.name, "--"):
		return []string{o.name + "=" + o.value}
	}
	return []string{o.name, o.value}
}

// parse splits a command's words. Words behind "--" are no options.
func (known options) parse(command string, words []string) ([]option, error) {
	var out []option
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			for _, rest := range words[i+1:] {
				out = append(out, option{value: rest})
			}
			return out, nil
		}
		if !strings.HasPrefix(w, "-") || w == "-" {
			out = append(out, option{value: w})
			continue
		}
		name, value, given := strings.Cut(w, "=")
		short := len(w) > 2 && !strings.HasPrefix(w, "--") && slices.Contains(known.values, w[:2])
		switch {
		case short:
			out = append(out, option{w[:2], strings.TrimPrefix(w[2:], "=")})
		case slices.Contains(known.values, name) && given:
			out = append(out, option{name, value})
		case slices.Contains(known.values, name) && i+1 < len(words):
			i++
			out = append(out, option{name, words[i]})
		case slices.Contains(known.flags, w):
			out = append(out, option{name: w})
		default:
			return nil, fault.Invalid("%s with the option %q can't be planned; leave it out", command, clip(w))
		}
	}
	return out, nil
}

// without leaves words out that a rewrite says itself: flags, and options with
// the value that follows.
func without(words, flags, values []string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		if words[i] == "--" {
			return append(out, words[i:]...)
		}
		name, _, given := strings.Cut(words[i], "=")
		switch {
		case slices.Contains(values, name):
			if !given {
				i++
			}
		case !slices.Contains(flags, words[i]):
			out = append(out, words[i])
		}
	}
	return out
}

// refuseAny refuses a command for one of its options.
func refuseAny(command string, words []string, why string, names ...string) error {
	for _, w := range words {
		if w == "--" {
			return nil
		}
		name, _, _ := strings.Cut(w, "=")
		if slices.Contains(names, name) {
			return fault.Invalid("%s %s can't be planned: %s", command, clip(w), why)
		}
	}
	return nil
}

// clip keeps a person's or a guest's text in messages short.
func clip(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
