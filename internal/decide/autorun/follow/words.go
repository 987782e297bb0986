package follow

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
)

// mostOdd is how many files with odd names are looked for in a text; of more each counts.
const mostOdd = 2000

// isBorder tells of what ends a word of a setting, a script or a document.
func isBorder(r rune) bool {
	return r <= ' ' || strings.ContainsRune("\"'`;|&()<>,=:[]{}*?\\", r)
}

// isTaker tells whether a word stands before one that is a directory, or a file without an end, whatever it
// looks like: of shells' helpers, clients and git.
func isTaker(word string) bool {
	if word == "Bash" { // an agent's tool, before what it may do
		return false
	}
	switch strings.ToLower(strings.TrimLeft(word, "-")) {
	case "path_add", "path_rm", "man_add", "load_prefix", "source", ".", "source_env", "source_env_if_exists", "source_up", "dotenv", "dotenv_if_exists", "watch_file", "env_vars_required",
		"use", "flake", "layout", "c", "prefix", "cwd", "dir", "directory", "script-shell", "require", "import", "r",
		"hookspath", "path", "fsmonitor", "attributesfile", "excludesfile", "worktree", "sshcommand", "pythonpath", "node_path", "bash_env", "sh", "bash", "zsh", "dash", "fish", "python3", "ruby", "perl", "deno", "bun", "exec":
		return true
	}
	return false
}

// isRunner tells of the words before one that is a directory if it looks like a path: of clients that
// take one for a program.
func isRunner(word string) bool {
	switch strings.ToLower(word) {
	case "run", "tsx", "ts-node", "npx", "uvx", "bunx", "run-parts":
		return true
	}
	return false
}

// isProse tells of a document for people and agents, which speaks of files: what it mentions is not
// run by that. Folded.
func isProse(at string) bool {
	switch path.Ext(at) {
	case ".md", ".mdc", ".markdown":
		return true
	}
	return false
}

// gitHooks are those of git that run at usual commands, for a directory of hooks that is the whole.
func gitHooks() []string {
	return []string{
		"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push",
		"pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman", "post-index-change", "reference-transaction", "push-to-checkout", "pre-receive", "update", "post-receive", "post-update",
	}
}

// readText marks what a text names.
func (s *search) readText(text []byte, bases []string, lead autorun.Lead) {
	if bytes.IndexByte(text[:min(len(text), 8<<10)], 0) >= 0 {
		return // of no words
	}
	if lead.Scope > autorun.ScopeImports {
		s.readOdd(text, lead)
	}
	s.readWords(text, bases, lead)
	if bytes.IndexByte(text, '\\') >= 0 { // it may part names, too, as on Windows
		s.readWords(bytes.ReplaceAll(text, []byte{'\\'}, []byte{'/'}), bases, lead)
	}
}

// readProse reads a document: its head of settings, the commands of which agents take the output
// into it, and what it imports.
func (s *search) readProse(text []byte, bases []string, lead autorun.Lead) {
	if head, ok := bytes.CutPrefix(text, []byte("---\n")); ok {
		head, _, _ = bytes.Cut(head, []byte("\n---"))
		s.readText(head, bases, lead)
	}
	for rest := text; ; {
		_, command, ok := bytes.Cut(rest, []byte("!`"))
		if !ok {
			break
		}
		command, rest, _ = bytes.Cut(command, []byte("`"))
		s.readText(command, bases, lead)
	}
	lead.Scope = min(lead.Scope, autorun.ScopeImports)
	s.readText(text, bases, lead)
}

func (s *search) readWords(text []byte, bases []string, lead autorun.Lead) {
	if lead.Scope > autorun.ScopeImports {
		bases = append(bases, s.entered(text, bases, lead)...)
	}
	before := ""
	for word := range bytes.FieldsFuncSeq(text, isBorder) {
		w := string(word)
		name, imported := strings.CutPrefix(w, "@")
		if (lead.Scope > autorun.ScopeImports || imported) && !isMention(w, before) {
			s.readWord(name, before, bases, lead)
		}
		before = w
	}
}

// isMention tells of a file that JetBrains' editors only note, as opened or as changed.
func isMention(word, before string) bool {
	switch strings.ToLower(before) {
	case "file":
		return strings.HasPrefix(word, "//$")
	case "beforepath", "afterpath":
		return true
	}
	return false
}

// mostEntered bounds the directories that one text enters.
const mostEntered = 32

// entered are the directories in which commands of a text are run, since it enters them before: its
// names may be from there. The files by which builds and clients are run there, without a word of
// them, count as well.
func (s *search) entered(text []byte, bases []string, lead autorun.Lead) (all []string) {
	before := ""
	for word := range bytes.FieldsFuncSeq(text, isBorder) {
		name := string(word)
		enters := before == "cd" || before == "pushd"
		before = name
		if !enters || len(all) >= mostEntered {
			continue
		}
		if strings.HasPrefix(name, "$") {
			_, name, _ = strings.Cut(name, "/")
		}
		for _, base := range bases {
			at := path.Join(base, name)
			if strings.HasPrefix(name, "/") {
				at = path.Clean(name)
			}
			rel, ok := s.relative(at)
			if at := autorun.Fold(rel); ok && s.dirs[at] && !slices.Contains(all, path.Join(s.tree.Root, rel)) {
				all = append(all, path.Join(s.tree.Root, rel))
				s.markBuilds(at, lead)
			}
		}
	}
	return all
}

// markBuilds marks the files of a directory that tools run when they are used there. Folded.
func (s *search) markBuilds(dir string, lead autorun.Lead) {
	for at, name := range s.all {
		if path.Dir(at) == dir && s.files.Level(name) == autorun.Used {
			s.markPath(at, lead)
		}
	}
}

// readOdd looks for the names that are several words of a text.
func (s *search) readOdd(text []byte, lead autorun.Lead) {
	for _, at := range s.odd {
		if len(s.odd) > mostOdd || bytes.Contains(text, []byte(path.Base(s.all[at]))) {
			s.markPath(at, lead)
		}
	}
}

// readWord marks what a word of a text is the name of, from one of the directories.
func (s *search) readWord(word, before string, bases []string, lead autorun.Lead) {
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
	slash := strings.Contains(word, "/")
	pathlike, taken := taken || slash, taken || slash && isRunner(before)
	for _, name := range names {
		for _, base := range bases {
			at := path.Join(base, name)
			if strings.HasPrefix(name, "/") {
				at = path.Clean(name)
			}
			s.markNamed(at, pathlike, taken, strings.EqualFold(before, "hookspath"), lead)
		}
	}
}

// markNamed marks an absolute path, if the tree has it, or could have.
func (s *search) markNamed(abs string, pathlike, taken, hooksDir bool, lead autorun.Lead) {
	if abs == s.tree.Root && hooksDir {
		for _, hook := range gitHooks() {
			s.markPath(hook, lead)
		}
		return
	}
	rel, ok := s.relative(abs)
	if !ok {
		return
	}
	at := autorun.Fold(rel)
	if _, is := s.all[at]; is {
		s.markPath(at, lead)
	}
	if !pathlike {
		return
	}
	if s.dirs[at] && (lead.Scope == autorun.ScopeDirs || lead.Scope == autorun.ScopeTaken && taken) {
		s.markPath(at, lead)
	}
	for _, stem := range slices.Concat(s.stems[at], s.stems[at+"/index"], s.stems[at+"/__init__"], s.stems[at+"/__main__"]) {
		s.markPath(stem, lead)
	}
	s.throughLinks(abs, lead)
}

// throughLinks marks where a name leads whose directories, or which itself, are links.
func (s *search) throughLinks(abs string, lead autorun.Lead) {
	rel, _ := s.relative(abs)
	for dir := autorun.Fold(rel); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if len(s.links[dir]) > 0 {
			s.followLink("/", abs, lead, 0)
			return
		}
	}
}
