package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/autorun"
	"github.com/cofferdam-dev/cofferdam/internal/autorun/follow"
	"github.com/cofferdam-dev/cofferdam/internal/hostpath"
)

// The settings of a person's programs lie in their home directory under the names that internal/autorun knows: an agent
// reads .cursor there as it does in a project. So there is no second list of programs. What these files name is read as
// well, as long as it is the person's own: git and shells include files of any name.

// Bounds of looking through a person's settings.
const (
	mostSettings  = 4000   // files that are read
	mostListed    = 40_000 // names that are gone through
	settingsDepth = 6      // directories below the home directory's own
)

// outsideSearch gathers settings of a person's that lie outside of a directory.
type outsideSearch struct {
	dir    string // whose files they may start; nothing in it is outside
	home   string // "": it is not known
	found  []follow.Outside
	read   map[string]bool // names without links
	listed int
}

// add reads a file, and what it names of the person's own. Its relative names may be from bases, and from where it lies.
func (s *outsideSearch) add(name string, bases ...string) {
	queue := []string{name}
	for len(queue) > 0 && len(s.found) < mostSettings && s.listed < mostListed {
		name, queue = queue[0], queue[1:]
		s.listed++
		at, text := settingsText(name)
		if len(text) == 0 || s.read[at] || isAtOrBelow(at, s.dir) {
			continue
		}
		s.read[at] = true
		own := append(slices.Clone(bases), filepath.Dir(name))
		s.found = append(s.found, follow.Outside{Bases: own, Text: text})
		queue = append(queue, s.included(text, filepath.Dir(name))...)
	}
}

// included are the files of the person's that a text names, wherever in it: by an absolute name, from the home directory, or
// from where the text lies.
func (s *outsideSearch) included(text []byte, dir string) (all []string) {
	if s.home == "" {
		return nil
	}
	for word := range bytes.FieldsFuncSeq(text, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\"'`;|&()<>,=[]*?", r) }) {
		name := string(word)
		for _, home := range []string{"~/", "$HOME/", "${HOME}/", "{env:HOME}/", "${env:HOME}/", "%(prefix)/"} {
			if rest, is := strings.CutPrefix(name, home); is {
				name = filepath.Join(s.home, rest)
			}
		}
		switch {
		case filepath.IsAbs(name):
		case strings.ContainsAny(name, "$%~:") || !strings.ContainsAny(name, "./"):
			continue
		default:
			name = filepath.Join(dir, name)
		}
		if name = filepath.Clean(name); isAtOrBelow(name, s.home) && name != s.home && !isRecord(filepath.Base(name)) {
			all = append(all, name)
		}
	}
	return all
}

// addHome reads the settings in the home directory: of programs that are known, and of those whose files are hidden there.
func (s *outsideSearch) addHome(config string) {
	type place struct {
		name  string
		depth int
	}
	var queue []place
	for _, e := range s.list(s.home) {
		level := autorun.Know(slices.Values([]string{e.Name()}))
		switch name := filepath.Join(s.home, e.Name()); {
		case level.Scope(e.Name()) == autorun.ScopeSealed || isRecord(e.Name()):
		case level.Level(e.Name()) >= autorun.Instructing || strings.HasPrefix(e.Name(), ".") && e.Type().IsRegular():
			queue = append(queue, place{name, 0})
		}
	}
	queue = append(queue, place{config, 0}, place{filepath.Join(s.home, "Library", "Application Support"), 0})
	for len(queue) > 0 && s.listed < mostListed && len(s.found) < mostSettings {
		at := queue[0]
		queue = queue[1:]
		p, err := hostpath.Follow(at.name)
		if err != nil {
			continue // it has just gone, or is no file
		}
		kind, name := p.ID.Type, p.Name
		p.Close()
		if kind == hostpath.File {
			s.add(at.name, s.home)
			continue
		}
		if at.depth > settingsDepth || s.read[name] || isAtOrBelow(name, s.dir) {
			continue
		}
		s.read[name] = true
		for _, e := range s.list(name) {
			if !isRecord(e.Name()) && (!e.Type().IsRegular() || isSettings(e.Name())) {
				queue = append(queue, place{filepath.Join(at.name, e.Name()), at.depth + 1})
			}
		}
	}
}

// list is what is in a directory; nothing if it can't be read.
func (s *outsideSearch) list(dir string) []fs.DirEntry {
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

// settingsText is a file that is small enough, and its name without links.
func settingsText(name string) (at string, text []byte) {
	p, err := hostpath.Follow(name)
	if err != nil {
		return "", nil
	}
	defer p.Close()
	if p.ID.Type != hostpath.File {
		return "", nil
	}
	text, err = p.ReadFile(mostNaming)
	if err != nil {
		return "", nil
	}
	return p.Name, text
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
func isRecord(name string) bool {
	name = strings.ToLower(name)
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

// outsideTexts are settings of the person's that lie elsewhere and are in force in a directory:
// those of git, of shells, of package clients and of agents.
func outsideTexts(dir string) []follow.Outside {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	s := &outsideSearch{dir: dir, home: home, read: map[string]bool{}}
	tops := s.addRepository(dir)
	s.add("/etc/gitconfig", tops...)
	if home == "" {
		return s.found
	}
	config := os.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	for _, name := range []string{filepath.Join(home, ".gitconfig"), filepath.Join(config, "git", "config"), os.Getenv("GIT_CONFIG_GLOBAL")} {
		s.add(name, tops...)
	}
	for _, c := range mcpClients() { // which variables may have elsewhere
		s.add(c.user(home), home)
	}
	s.addHome(config)
	return s.found
}

// addRepository reads the settings of the repository that a directory is in, which lie above it or elsewhere. tops are
// the directories that names in settings of git's may be from.
func (s *outsideSearch) addRepository(dir string) (tops []string) {
	tops = []string{dir}
	for top := dir; ; top = filepath.Dir(top) {
		if git := gitDir(top); git != "" {
			for _, name := range []string{"config", "config.worktree"} {
				if text := textOf(filepath.Join(git, name)); len(text) > 0 { // it may lie in the directory, and is the person's
					s.found = append(s.found, follow.Outside{Bases: []string{top, git}, Text: text})
					for _, included := range s.included(text, git) {
						s.add(included, top)
					}
				}
			}
			return append(tops, top)
		}
		if filepath.Dir(top) == top {
			return tops
		}
	}
}
