package plan

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// Install is an install command that was found in another command: in its words, or in
// a text that it hands to a shell.
type Install struct {
	Argv []string
	Dir  string // where it starts, absolute
	// Shown tells that Dir is in a mount, so that another sandbox has it too.
	Shown bool
	// Rewrite is the command that resolves it.
	Rewrite installer.Rewrite
}

// MaxInstalls bounds what is tried of one command: each install takes a sandbox of its own, and more than once.
const MaxInstalls = 8

// Installs finds the installs of known clients in a command that starts in dir, of which mounts (the
// directories of the sandbox on which the host's lie) are shown to another sandbox,
// too. rest are those beyond MaxInstalls, which nobody is to try with them. A command that a shell would work on first (variables,
// patterns, other commands' output) is not understood, and passed over: what is found is tried
// in a sandbox of its own, and counts only as far as the gateway shows it.
func Installs(known []installer.Installer, argv []string, dir string, mounts []string) (found, rest []Install) {
	for _, c := range commands(argv, dir) {
		own := slices.Clone(c.argv)
		if strings.Contains(own[0], "/") { // of a virtual environment that only this sandbox has
			own[0] = path.Base(own[0])
		}
		project := projectAt(c.dir, mounts)
		rewrite, err := Of(known, own, project)
		if err == nil {
			found = append(found, Install{Argv: c.argv, Dir: c.dir, Shown: project.Top != "", Rewrite: rewrite})
		}
	}
	most := min(len(found), MaxInstalls)
	return found[:most:most], found[most:]
}

// projectAt is the mount that covers a directory.
func projectAt(dir string, mounts []string) installer.Project {
	var p installer.Project
	for _, m := range mounts {
		rel, err := filepath.Rel(m, dir)
		if dir == "" || err != nil || rel == ".." || strings.HasPrefix(rel, "../") || len(m) <= len(p.Top) {
			continue
		}
		p = installer.Project{Top: m, Here: rel}
	}
	return p
}

// simple is one command of a shell's text.
type simple struct {
	argv []string
	dir  string
}

// commands are those that a command starts, as far as its words tell.
func commands(argv []string, dir string) []simple {
	if len(argv) == 0 {
		return nil
	}
	switch path.Base(argv[0]) {
	case "sh", "bash", "dash":
	case "env", "exec", "time", "nice":
		rest := withoutVariables(argv[1:])
		if choosesSource(argv[1 : len(argv)-len(rest)]) {
			return nil
		}
		return commands(rest, dir)
	default:
		return []simple{{argv, dir}}
	}
	for i, w := range argv[1:] {
		switch {
		case strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.HasSuffix(w, "c") && i+2 < len(argv):
			return script(argv[i+2], dir)
		case !strings.HasPrefix(w, "-"):
			return nil // a file
		}
	}
	return nil
}

// withoutVariables leaves out what stands before a command: NAME=VALUE.
func withoutVariables(words []string) []string {
	for len(words) > 0 && strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "-") {
		words = words[1:]
	}
	return words
}

// maxScript bounds a shell's text that is read, in bytes.
const maxScript = 16 << 10

// script are the commands of a shell's text.
func script(text, dir string) []simple {
	if len(text) > maxScript {
		return nil
	}
	var out []simple
	for _, c := range shellCommands(text) {
		if slices.ContainsFunc(c.words, func(w string) bool { return strings.Contains(w, "$(") }) { // its commands stand between ours
			return out
		}
		words := withoutVariables(c.words)
		variables := c.words[:len(c.words)-len(words)]
		switch {
		case len(words) == 0:
			if choosesSource(variables) {
				return out
			}
		case c.known && !c.apart && words[0] == "cd" && len(words) == 2 && words[1] != "" && words[1] != "-":
			if dir = path.Join(dir, words[1]); path.IsAbs(words[1]) {
				dir = path.Clean(words[1])
			}
			if !path.IsAbs(dir) { // nobody said where it starts
				return out
			}
		case changesRest(words):
			return out
		case c.known && !choosesSource(variables):
			out = append(out, commands(words, dir)...)
		}
	}
	return out
}

// changesRest tells of a command by which what follows may run in another directory, or by other settings, than its words say.
func changesRest(words []string) bool {
	switch words[0] {
	case ".", "if", "elif", "else", "while", "until", "for", "case", "select", "function": // what stands in between may not be run
		return true
	case "export", "declare", "typeset", "readonly":
		return choosesSource(words[1:])
	}
	if strings.ContainsAny(words[0], "({") {
		return true
	}
	return slices.ContainsFunc(words, func(word string) bool { // also behind "then", or in a function
		switch strings.TrimLeft(word, "({") {
		case "cd", "pushd", "popd", "eval", "source", "alias":
			return true
		}
		return false
	})
}

// choosesSource tells whether some variables may be those by which a client asks for other things, or elsewhere: without them
// it would be another install.
func choosesSource(variables []string) bool {
	return slices.ContainsFunc(variables, func(v string) bool {
		name, _, _ := strings.Cut(strings.ToLower(v), "=")
		return slices.ContainsFunc([]string{
			"index", "registry", "url", "links", "config", "proxy", "private", "flags", "work", "env", "constraint", "require", "override", "path", "home", "project",
		}, func(part string) bool { return strings.Contains(name, part) })
	})
}
