// Package autorun knows the files that programs of a developer's machine start, or take
// orders from, without being asked for it: editors, git, package clients, agents. Somebody
// who brings over files from a sandbox is asked about these by name. Pure.
//
// A name is compared as the least exact of file systems does, since the one that the files come
// to may be one of them (Fold), and at any depth, since any directory may be the one that a
// program is started in. A directory that git takes for a repository has no name of its own;
// it is recognised by what is in it.
package autorun

import (
	"iter"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
)

// Level is how a file comes to be run.
type Level int

// Levels, from the harmless on.
const (
	// Plain: nothing is known to run it.
	Plain Level = iota
	// Used: a tool runs it when a person uses that tool there, as make does its makefile.
	Used
	// Started: a program runs it, or does what it says, when the directory is opened, listed
	// or worked in as usual, and shows nobody that it does.
	Started
)

// program is one that has files of its own, by which it runs others.
type program struct {
	name  string
	level Level
	// names are of files or directories; of a directory all that is in it counts. One with a
	// star in front is how a file's name ends.
	names []string
}

// programs are all that are known here. This is the only list of files that a person's programs
// run by themselves.
func programs() []program {
	return []program{
		{"cofferdam", Started, []string{"cofferdam.yaml", ".aiignore"}}, // how the next run is made, and what it sees
		// git~1 is .git's short name on FAT and NTFS.
		{"git", Started, []string{".git", "git~1", ".githooks", ".gitattributes", ".gitmodules", ".gitconfig"}},
		{"other version controls", Started, []string{".hg", ".hgsub", ".jj", ".sl", ".svn", ".bzr", "_darcs", ".fslckout", "_fossil_"}},
		{"git's hooks", Started, []string{
			".husky", ".pre-commit-config.yaml", ".pre-commit-hooks.yaml",
			"lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json",
			"lefthook-local.yml", "lefthook-local.yaml", "lefthook-local.toml", "lefthook-local.json",
			".lefthook-local.yml", ".lefthook-local.yaml", ".lefthook-local.toml", ".lefthook-local.json", "prek.toml",
			".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", ".lefthook.json", ".lefthook", ".lefthook-local", ".overcommit.yml",
		}},
		{"hosts of repositories", Started, []string{".github", ".gitlab-ci.yml", ".gitea", ".forgejo", ".circleci"}},
		{"editors", Started, []string{
			".vscode", "*.code-workspace", ".idea", ".fleet", ".vs", ".zed", ".helix", ".vim", ".nvim", ".lazy.lua", ".neoconf.json", ".ycm_extra_conf.py", ".devcontainer", ".devcontainer.json",
			".exrc", ".vimrc", ".lvimrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".dir-locals-2.el", "*.sublime-project",
		}},
		{"agents", Started, []string{
			".mcp.json", "mcp.json", ".claude", ".claude.json", ".codex", ".gemini", ".qwen", ".opencode", "opencode.json", "opencode.jsonc",
			".cursor", ".windsurf", ".kiro", ".roo", ".roomodes", ".cline", ".continue", ".copilot", ".amp", ".trae", ".goose", ".crush", "crush.json", ".crush.json",
			".aider.conf.yml", ".factory", ".augment", ".junie", ".agents",
		}},
		{"shells", Started, []string{
			".envrc", ".direnv", ".env.fish", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
			".autoenv", ".autoenv.zsh", ".mise.toml", "mise.toml", ".mise.local.toml", "mise.local.toml", ".mise", "mise", ".config", ".rtx.toml", ".tool-versions",
			"devbox.json", ".devenv", "devenv.nix", ".flox",
		}},
		{"package clients", Started, []string{
			".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn", ".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.cjs", ".npm-extension", "bunfig.toml",
			".cargo", "rust-toolchain", "rust-toolchain.toml", "pip.conf", "pip.ini", ".pypirc", ".netrc", "_netrc", ".bundle", ".mvn", "gradle-wrapper.properties", "init.gradle",
		}},
		{"interpreters", Started, []string{"sitecustomize.py", "usercustomize.py", "sitecustomize", "usercustomize", "*.pth", "pyvenv.cfg", ".node_repl_history", ".pythonstartup", ".rprofile", ".irbrc", ".pryrc", ".gdbinit", ".lldbinit"}},
		{"builds", Used, []string{
			"makefile", "gnumakefile", "*.mk", "justfile", ".justfile", "taskfile.yml", "taskfile.yaml", "rakefile", "build.rs", "setup.py", "noxfile.py", "tox.ini",
			"conftest.py", "gruntfile.js", "gulpfile.js", "cmakelists.txt", "build.gradle", "build.gradle.kts", "settings.gradle", "gradlew", "mvnw", "dockerfile", "docker-compose.yml", "compose.yaml", "vagrantfile",
		}},
	}
}

// repositoryParts are the names that are git's in a repository without a working tree.
func repositoryParts() []string {
	return []string{
		"head", "config", "config.worktree", "commondir", "gitdir", "index", "objects", "refs", "packed-refs", "reftable",
		"hooks", "info", "logs", "modules", "worktrees", "branches", "description", "shallow", "orig_head", "fetch_head",
	}
}

// Marks are names that Know has to hear of in each directory in which there are any, since
// they make it a repository, as git writes them.
func Marks() []string { return []string{"HEAD", "commondir", "objects", "refs"} }

// Fold gives all names one form that some file system takes for the same: without regard to
// case (in all of Unicode, as ext4 and others do it), without the characters that HFS+ ignores,
// and without what Windows drops from a name's end, such as dots, spaces and a stream's name.
func Fold(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) {
		name = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) { // formats, which nobody sees
				return -1
			}
			return r
		}, name)
		name = cases.Fold().String(name)
	}
	parts := strings.Split(strings.ToLower(name), "/")
	for i, part := range parts {
		if part == "." || part == ".." {
			continue
		}
		part, _, _ = strings.Cut(part, ":")
		parts[i] = strings.TrimRight(part, " .")
	}
	return strings.Join(parts, "/")
}

// Files tells the level of each path of a directory.
type Files struct {
	names        map[string]Level
	endings      map[string]Level
	repositories []string // directories that git takes for repositories, folded; "." is the whole
}

// Know looks at all paths of a directory, relative to it and with slashes. Those that were
// there before and those that are to come must be among them: git's parts of a repository may
// come one by one.
func Know(paths iter.Seq[string]) Files {
	f := Files{names: map[string]Level{}, endings: map[string]Level{}}
	for _, p := range programs() {
		for _, name := range p.names {
			if ending, ok := strings.CutPrefix(name, "*"); ok {
				f.endings[ending] = max(f.endings[ending], p.level)
			} else {
				f.names[name] = max(f.names[name], p.level)
			}
		}
	}
	parts := map[string]map[string]bool{}
	for name := range paths {
		for name = Fold(name); name != "." && name != "/"; name = path.Dir(name) {
			base, dir := path.Base(name), path.Dir(name)
			switch base {
			default:
				continue
			case "head", "commondir", "objects", "refs": // as Marks, folded
			}
			if parts[dir] == nil {
				parts[dir] = map[string]bool{}
			}
			parts[dir][base] = true
		}
	}
	for dir, has := range parts {
		// A repository's objects and references may be elsewhere, where commondir says.
		if has["head"] && (has["commondir"] || has["objects"] && has["refs"]) {
			f.repositories = append(f.repositories, dir)
		}
	}
	slices.Sort(f.repositories)
	return f
}

// Level is a path's, which that of a directory above it may be.
func (f Files) Level(name string) Level {
	level := Plain
	name = Fold(name)
	for part := range strings.SplitSeq(name, "/") {
		level = max(level, f.names[part])
		for ending, of := range f.endings {
			if strings.HasSuffix(part, ending) {
				level = max(level, of)
			}
		}
	}
	if f.inRepository(name) {
		level = Started
	}
	return level
}

// inRepository wants a folded name.
func (f Files) inRepository(name string) bool {
	return slices.ContainsFunc(f.repositories, func(dir string) bool {
		if dir == "." {
			first, _, _ := strings.Cut(name, "/")
			return slices.Contains(repositoryParts(), first)
		}
		return name == dir || strings.HasPrefix(name, dir+"/")
	})
}
