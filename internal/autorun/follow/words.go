package follow

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/autorun"
)

// mostOdd is how many files with odd names are looked for in a text; of more each counts.
const mostOdd = 2000

// isBorder tells of what ends a word of a setting, a script or a document.
func isBorder(r rune) bool {
	return r <= ' ' || strings.ContainsRune("\"'`;|&()<>,=:[]{}*?\\", r)
}

// takers are the words before one that is a directory, or a file without an end, whatever it
// looks like: of shells' helpers, clients and git.
func isTaker(word string) bool {
	switch strings.ToLower(strings.TrimLeft(word, "-")) {
	case "path_add", "path_rm", "man_add", "load_prefix", "source", ".", "source_env", "source_env_if_exists", "source_up", "dotenv", "dotenv_if_exists", "watch_file", "env_vars_required",
		"use", "flake", "layout", "cd", "pushd", "c", "prefix", "cwd", "dir", "directory", "script-shell", "require", "import", "r",
		"hookspath", "path", "fsmonitor", "attributesfile", "excludesfile", "worktree", "sshcommand", "pythonpath", "node_path", "bash_env", "sh", "bash", "zsh", "dash", "fish", "python3", "ruby", "perl", "deno", "bun", "exec":
		return true
	}
	return false
}

// hooks are those of git that run at usual commands, for a directory of hooks that is the whole.
func hooks() []string {
	return []string{
		"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push",
		"pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman", "post-index-change", "reference-transaction", "push-to-checkout", "pre-receive", "update", "post-receive", "post-update",
	}
}

// read marks what a text names.
func (s *search) read(text []byte, bases []string, lead autorun.Lead) {
	if bytes.IndexByte(text[:min(len(text), 8<<10)], 0) >= 0 {
		return // of no words
	}
	if lead.Scope > autorun.ScopeImports {
		s.readOdd(text, lead)
	}
	s.words(text, bases, lead)
	if bytes.IndexByte(text, '\\') >= 0 { // it may part names, too, as on Windows
		s.words(bytes.ReplaceAll(text, []byte{'\\'}, []byte{'/'}), bases, lead)
	}
}

func (s *search) words(text []byte, bases []string, lead autorun.Lead) {
	before := ""
	for word := range bytes.FieldsFuncSeq(text, isBorder) {
		w := string(word)
		name, imported := strings.CutPrefix(w, "@")
		if lead.Scope > autorun.ScopeImports || imported {
			s.word(name, before, bases, lead)
		}
		before = w
	}
}

// readOdd looks for the names that are several words of a text.
func (s *search) readOdd(text []byte, lead autorun.Lead) {
	for _, at := range s.odd {
		if len(s.odd) > mostOdd || bytes.Contains(text, []byte(path.Base(s.all[at]))) {
			s.mark(at, lead)
		}
	}
}

// word marks what a word of a text is the name of, from one of the directories.
func (s *search) word(word, before string, bases []string, lead autorun.Lead) {
	word = strings.TrimLeft(word, "!^")
	taken := isTaker(before)
	if before == "-m" && !strings.Contains(word, "/") { // of Python
		word, taken = strings.ReplaceAll(word, ".", "/"), true
	}
	names := []string{word}
	switch {
	case strings.HasPrefix(word, "$"), strings.HasPrefix(word, "%"), strings.HasPrefix(word, "~"):
		_, rest, ok := strings.Cut(word, "/") // of a variable, or of who runs it
		if !ok {
			return
		}
		names = []string{rest}
	case strings.HasPrefix(word, "/"):
		names = append(names, strings.TrimLeft(word, "/")) // behind a variable that ended there
	case word == "":
		return
	}
	pathlike := taken || strings.Contains(word, "/")
	for _, name := range names {
		for _, base := range bases {
			at := path.Join(base, name)
			if strings.HasPrefix(name, "/") {
				at = path.Clean(name)
			}
			s.named(at, pathlike, strings.EqualFold(before, "hookspath"), lead)
		}
	}
}

// named marks an absolute path, if the tree has it, or could have.
func (s *search) named(abs string, pathlike, hooksDir bool, lead autorun.Lead) {
	if abs == s.tree.Root && hooksDir {
		for _, hook := range hooks() {
			s.mark(hook, lead)
		}
		return
	}
	rel, ok := s.relative(abs)
	if !ok {
		return
	}
	at := autorun.Fold(rel)
	if _, is := s.all[at]; is {
		s.mark(at, lead)
	}
	if !pathlike {
		return
	}
	if lead.Scope == autorun.ScopeDirs && s.dirs[at] {
		s.mark(at, lead)
	}
	for _, stem := range slices.Concat(s.stems[at], s.stems[at+"/index"], s.stems[at+"/__init__"], s.stems[at+"/__main__"]) {
		s.mark(stem, lead)
	}
	s.throughLinks(abs, lead)
}

// throughLinks marks where a name leads whose directories, or which itself, are links.
func (s *search) throughLinks(abs string, lead autorun.Lead) {
	rel, _ := s.relative(abs)
	for dir := autorun.Fold(rel); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if len(s.links[dir]) > 0 {
			s.follow("/", abs, lead, 0)
			return
		}
	}
}
