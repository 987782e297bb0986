package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun/follow"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// The settings of a person's programs lie in their home directory under the names that internal/decide/autorun
// knows: an agent reads .cursor there as it does in a project. So there is no second list of programs. Files
// that these name are read as well, as long as they are the person's own: git and shells include files of any
// name.

// Bounds of looking through a person's settings. Those that are known by their names come first, and then the files that
// they name.
const (
	mostSettings      = 4000     // files that are read
	mostSettingsText  = 8 << 20  // bytes of one of them
	mostSettingsTexts = 32 << 20 // bytes of all
	mostListed        = 40_000   // names in directories that are gone through
	mostTried         = 100_000  // names that are looked at
	mostIncluded      = 5000     // names that one text has looked at
	settingsDepth     = 6        // directories below the home directory's own
)

// outsideSearch gathers settings of a person's that lie outside of a directory.
type outsideSearch struct {
	dir    string // whose files they may start; nothing in it is outside
	home   string // "": it is not known
	real   string // the home directory without links
	found  []follow.Outside
	bytes  int             // of what was found
	tried  map[string]bool // names as they were asked for
	read   map[string]bool // names without links
	listed int
	named  []namedSettings // that wait for those that are known by their names
	left   string          // the first that a bound left out; "": none
}

// namedSettings is a file that another text names, and the directories that its own names may be from.
type namedSettings struct {
	name  string
	bases []string
}

// addFile reads a file, and notes what it names of the person's own. Its relative names may be from bases, and from where it lies.
func (s *outsideSearch) addFile(name string, bases ...string) {
	if s.tried[name] {
		return
	}
	s.tried[name] = true
	at, text, large := settingsText(name)
	if s.read[at] || isAtOrBelow(at, s.dir) {
		return
	}
	if large || len(text) > 0 && (len(s.found) >= mostSettings || s.bytes+len(text) > mostSettingsTexts) {
		s.leaveOut(name)
		return
	}
	if len(text) == 0 {
		return
	}
	s.read[at] = true
	s.keepText(text, filepath.Dir(name), bases)
}

// keepText notes a text of a directory, and what it names.
func (s *outsideSearch) keepText(text []byte, dir string, bases []string) {
	s.bytes += len(text)
	s.found = append(s.found, follow.Outside{Bases: append(slices.Clone(bases), dir), Text: text})
	for _, name := range s.included(text, dir) {
		s.named = append(s.named, namedSettings{name, bases})
	}
}

// addNamed reads the files that texts name, and those that these name.
func (s *outsideSearch) addNamed() {
	for ; len(s.named) > 0; s.named = s.named[1:] {
		if len(s.tried) >= mostTried {
			s.leaveOut(s.named[0].name)
			return
		}
		s.addFile(s.named[0].name, s.named[0].bases...)
	}
}

// leaveOut notes that there is more than is looked through.
func (s *outsideSearch) leaveOut(name string) {
	if s.left == "" {
		s.left = name
	}
}

// gitPath is a line of git's settings that names a file, which may have spaces in its name and no point.
var gitPath = regexp.MustCompile(`(?im)^[ \t]*path[ \t]*=[ \t]*"?([^"\n]+?)"?[ \t\r]*$`)

// included are the files of the person's that a text names, wherever in it: by an absolute name, from the home directory, or
// from where the text lies.
func (s *outsideSearch) included(text []byte, dir string) (all []string) {
	if s.home == "" {
		return nil
	}
	seen := map[string]bool{}
	add := func(name string, plain bool) {
		name = s.personsName(name, dir, plain)
		if name == "" || seen[name] {
			return
		}
		if len(all) >= mostIncluded {
			s.leaveOut(name)
			return
		}
		seen[name] = true
		all = append(all, name)
	}
	for _, path := range gitPath.FindAllSubmatch(text, mostIncluded) {
		add(string(path[1]), true)
	}
	for word := range bytes.FieldsFuncSeq(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'`;|&()<>,=[]*?", r) }) {
		add(string(word), false)
	}
	return all
}

// personsName is a name in a text of a directory, if it may be of a file below the home directory; "" otherwise. A plain name
// is one that is a file's whatever it looks like.
func (s *outsideSearch) personsName(name, dir string, plain bool) string {
	for _, home := range []string{"~/", "$HOME/", "${HOME}/", "{env:HOME}/", "${env:HOME}/", "%(prefix)/"} {
		if rest, is := strings.CutPrefix(name, home); is {
			name = filepath.Join(s.home, rest)
		}
	}
	switch {
	case filepath.IsAbs(name):
	case strings.ContainsAny(name, "$%~:") || !plain && !strings.ContainsAny(name, "./"):
		return ""
	default:
		name = filepath.Join(dir, name)
	}
	name = filepath.Clean(name)
	for _, home := range []string{s.home, s.real} {
		if name != home && isAtOrBelow(name, home) && !isRecord(filepath.Base(name)) {
			return name
		}
	}
	return ""
}

// addHome reads the settings in the home directory: of programs that are known, and of those whose files are hidden there.
func (s *outsideSearch) addHome(config string) {
	type place struct {
		name  string
		depth int
	}
	var queue []place
	for _, e := range s.listDir(s.home) {
		level := autorun.Know(slices.Values([]string{e.Name()}))
		switch name := filepath.Join(s.home, e.Name()); {
		case level.Scope(e.Name()) == autorun.ScopeSealed || isRecord(e.Name()):
		case level.Level(e.Name()) >= autorun.Instructing || strings.HasPrefix(e.Name(), ".") && e.Type().IsRegular():
			queue = append(queue, place{name, 0})
		}
	}
	queue = append(queue, place{config, 0}, place{filepath.Join(s.home, "Library", "Application Support"), 0})
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if s.listed >= mostListed {
			s.leaveOut(at.name)
			return
		}
		p, err := hostpath.Follow(at.name)
		if err != nil {
			continue // it has just gone, or is no file
		}
		kind, name := p.ID.Type, p.Name
		p.Close()
		if kind == hostpath.File {
			s.addFile(at.name, s.home)
			continue
		}
		// A link to all of the host, such as a program's drive, leads to no settings of its own.
		if at.depth > settingsDepth || s.read[name] || isAtOrBelow(name, s.dir) || isAtOrBelow(s.real, name) || isKernels(name) {
			continue
		}
		s.read[name] = true
		for _, e := range s.listDir(name) {
			if !isRecord(e.Name()) && (!e.Type().IsRegular() || isSettings(e.Name())) {
				queue = append(queue, place{filepath.Join(at.name, e.Name()), at.depth + 1})
			}
		}
	}
}

// listDir lists a directory; nothing if it can't be read.
func (s *outsideSearch) listDir(dir string) []fs.DirEntry {
	at, err := hostpath.Follow(dir)
	if err != nil {
		return nil
	}
	defer at.Close()
	root, err := at.Root()
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil
	}
	s.listed += len(entries)
	return entries
}

// settingsText is a file, and its name without links. large tells of one of which nothing is read.
func settingsText(name string) (at string, text []byte, large bool) {
	p, err := hostpath.Follow(name)
	if err != nil {
		return "", nil, false
	}
	defer p.Close()
	if p.ID.Type != hostpath.File || isKernels(p.Name) {
		return "", nil, false
	}
	text, err = p.ReadFile(mostSettingsText)
	if err != nil {
		return p.Name, nil, !errors.Is(err, fs.ErrPermission)
	}
	return p.Name, text, false
}

// isKernels tells of what belongs to the host's kernel, where reading may wait or do something.
func isKernels(name string) bool {
	return slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(tree string) bool { return isAtOrBelow(name, tree) })
}

// isSettings tells of a name that settings and scripts have: by its end, or it has none.
func isSettings(name string) bool {
	switch strings.ToLower(filepath.Ext(strings.TrimPrefix(name, "."))) {
	case "", ".json", ".jsonc", ".json5", ".toml", ".yaml", ".yml", ".ini", ".conf", ".cfg", ".config", ".kdl", ".xml", ".plist", ".properties", ".local", ".service", ".desktop", ".rc",
		".sh", ".bash", ".zsh", ".fish", ".nu", ".elv", ".ps1", ".lua", ".vim", ".el", ".py", ".rb", ".js", ".mjs", ".cjs", ".ts", ".md", ".mdc":
		return true
	}
	return false
}

// isRecord tells of what programs note about what was done, and what they have fetched: it names files, and has none started.
// A program or a unit is none, however it is called.
func isRecord(name string) bool {
	name = strings.ToLower(name)
	switch filepath.Ext(name) {
	case ".service", ".timer", ".path", ".desktop", ".sh", ".bash", ".zsh", ".fish", ".py", ".rb", ".js", ".lua", ".vim", ".el":
		return false
	case ".xsession", ".xsessionrc": // which a login runs
		return false
	}
	for _, part := range []string{"history", "recent", "cache", "crash", "telemetry", "session", "backup", "trash"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	switch name {
	case ".viminfo", ".lesshst", ".xsession-errors", "storage.json", "logs", "log", "workspacestorage", "local storage", "indexeddb", "blob_storage", "service worker", "websql", "databases", "node_modules", "extensions", "registry", "toolchains",
		"projects", "todos", "shell-snapshots", "statsig", "tmp", "temp", "site-packages", "__pycache__", "elpa", "straight", "bundle", "plugged", ".git":
		return true
	}
	return false
}

// isAtOrBelow tells whether a clean path is a directory or below it.
func isAtOrBelow(name, dir string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rel)
}

// outsideTexts are lookOutside's, and a person is told of what was left out.
func outsideTexts(dir string) []follow.Outside {
	found, left := lookOutside(dir)
	if left != "" {
		fmt.Fprintf(os.Stderr, "cofferdam: note: your settings are too many or too large to look through for what they start of %s, so that at least %s was left out; look at each changed file before you use it\n", ui.Printable(dir), ui.Printable(left))
	}
	return found
}

// lookOutside finds settings of the person's that lie elsewhere and are in force in a directory:
// those of git, of shells, of package clients and of agents. left is one that was not read, since there are too many, or
// it is too large; "": none.
func lookOutside(dir string) (found []follow.Outside, left string) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	s := &outsideSearch{dir: dir, home: home, real: home, tried: map[string]bool{}, read: map[string]bool{}}
	if p, err := hostpath.Follow(home); home != "" && err == nil {
		s.real = p.Name
		p.Close()
	}
	tops := s.addRepository(dir)
	s.addFile("/etc/gitconfig", tops...)
	if home == "" {
		return s.found, s.left
	}
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	for _, name := range []string{filepath.Join(home, ".gitconfig"), filepath.Join(config, "git", "config"), os.Getenv("GIT_CONFIG_GLOBAL")} {
		s.addFile(name, tops...)
	}
	s.addNamed()                     // whose names are from the working tree, which those that are found by their names are not
	for _, c := range mcpClients() { // which variables may have elsewhere
		s.addFile(c.user(home), home)
	}
	s.addHome(config)
	s.addNamed()
	return s.found, s.left
}

// addRepository reads the settings of the repository that a directory is in, which lie above it or elsewhere. tops are
// the directories that names in settings of git's may be from.
func (s *outsideSearch) addRepository(dir string) (tops []string) {
	tops = []string{dir}
	for top := dir; ; top = filepath.Dir(top) {
		if git := gitDir(top); git != "" {
			for _, name := range []string{"config", "config.worktree"} {
				if text := textOf(filepath.Join(git, name)); len(text) > 0 { // it may lie in the directory, and is the person's
					s.keepText(text, git, []string{top})
				}
			}
			return append(tops, top)
		}
		if filepath.Dir(top) == top {
			return tops
		}
	}
}
