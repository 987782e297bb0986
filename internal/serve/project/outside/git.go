package outside

import (
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// findGit finds what git has of a working tree elsewhere.
func (f *finder) findGit(top *hostpath.Path) {
	if dir, err := top.Below(".git", hostpath.Identity{Type: hostpath.Dir}); err == nil {
		f.borrowed(".git", dir, filepath.Join(f.of.Destination, ".git"))
		dir.Close()
		return
	}
	line, _, _ := strings.Cut(textOf(top, ".git"), "\n")
	name, is := strings.CutPrefix(line, "gitdir:")
	if name = strings.Trim(name, " \t\r"); !is || name == "" {
		return
	}
	path, looked := placeAt(name, f.of.Source, f.of.Destination)
	dir := openDir(path)
	if dir == nil {
		f.addPart(Part{File: ".git", Path: path, Why: "there is no directory here that may be looked at, and git finds no repository without it"})
		return
	}
	defer dir.Close()
	common := strings.TrimRight(textOf(dir, "commondir"), "\r\n")
	switch super, module := superproject(path, f.of.Source); {
	case common != "":
		f.worktree(top, dir, path, looked, common)
	case f.isShown(path, looked):
		f.borrowed(".git", dir, looked)
	case !isRepository(dir):
		f.addPart(Part{File: ".git", Path: path, Why: "that is no repository, and git finds none without it"})
	case module && configNamesBack(dir, path, top):
		f.addPart(f.submodule(path, super))
	default:
		f.addPart(unproved(path))
	}
}

// worktree notes the repository of a linked worktree. Its part there names the worktree back: else it may be anybody's.
func (f *finder) worktree(top, own *hostpath.Path, path, looked, common string) {
	commonPath, commonLooked := placeAt(common, path, looked)
	dir := openDir(commonPath)
	rest, inside := restBelow(path, commonPath)
	if dir == nil || !inside || filepath.Dir(rest) != "worktrees" || !isRepository(dir) {
		f.addPart(Part{File: ".git", Path: path, Why: "that is no part of a repository with worktrees, and git finds none without it"})
		return
	}
	defer dir.Close()
	if !namesBack(own, path, top) {
		part := unproved(path)
		part.Why += "; git worktree repair has it name a worktree that was moved"
		f.addPart(part)
		return
	}
	part := Part{File: ".git", Path: path, Why: "git finds no repository without"}
	if !f.isShown(commonPath, commonLooked) {
		part.Flags = append(part.Flags, Flag{Source: commonPath, Destination: commonLooked})
	}
	if own := (Flag{Source: path, Destination: looked, ReadWrite: true}); f.of.ReadWrite && !f.copied && !f.isWritable(own) {
		part.Flags = append(part.Flags, own)
	}
	if len(part.Flags) > 0 {
		f.addPart(part)
	}
	f.borrowed(".git", dir, commonLooked)
}

// namesBack tells whether a worktree's part of a repository says that the worktree is at a directory.
func namesBack(own *hostpath.Path, path string, top *hostpath.Path) bool {
	back, _ := placeAt(strings.TrimRight(textOf(own, "gitdir"), "\r\n"), path, path)
	return filepath.Base(back) == ".git" && isAtPath(filepath.Dir(back), top)
}

// configNamesBack tells whether a repository's settings say that its working tree is at a directory, in a line as git
// itself writes it for a submodule. Any other spelling counts as none.
func configNamesBack(repository *hostpath.Path, path string, top *hostpath.Path) bool {
	for line := range strings.SplitSeq(textOf(repository, "config"), "\n") {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "worktree = "); is {
			back, _ := placeAt(name, path, path)
			return isAtPath(back, top)
		}
	}
	return false
}

// isAtPath tells whether a directory lies at a path.
func isAtPath(path string, dir *hostpath.Path) bool {
	there := openDir(path)
	if there == nil {
		return false
	}
	defer there.Close()
	return there.ID == dir.ID
}

// superproject is the working tree that has a submodule with such a git directory, if that lies in it.
func superproject(path, top string) (dir string, is bool) {
	dir, _, is = strings.Cut(path, "/.git/modules/")
	if !is || dir == "" {
		return "", false
	}
	rest, inside := restBelow(top, dir)
	return dir, inside && rest != ""
}

// submodule is shown with the project that it belongs to: its repository says by a path between both where its files are.
func (f *finder) submodule(path, super string) Part {
	rest, _ := restBelow(f.of.Source, super)
	if f.copied {
		return Part{File: ".git", Path: path, Why: "it is a submodule, and git finds its repository in a run of " + super + " only"}
	}
	return Part{
		File: ".git", Path: path, Why: "it is a submodule, whose repository git finds with", Instead: true, Workdir: filepath.Join(f.of.Destination, rest),
		Flags: []Flag{{Source: super, Destination: f.of.Destination, ReadWrite: f.of.ReadWrite}},
	}
}

// unproved is a repository of which nothing but a file of the project says that it belongs to it. It gets no flag: whoever
// wrote that file, an agent for one, could have a person show any repository that there is.
func unproved(path string) Part {
	return Part{File: ".git", Path: path, Why: "it does not name this directory back, so that it may be another project's; git finds no repository without it"}
}

// isRepository tells whether git would take a directory for a repository.
func isRepository(dir *hostpath.Path) bool {
	return hasEntry(dir, "HEAD", hostpath.File) && hasEntry(dir, "objects", hostpath.Dir) && hasEntry(dir, "refs", hostpath.Dir)
}

// mostBorrowed is how many directories of objects are looked at, one borrowing from the other.
const mostBorrowed = 16

// borrowed notes the directories of objects that a repository borrows from, at whatever remove. file is what of the project
// leads to the repository.
func (f *finder) borrowed(file string, repository *hostpath.Path, looked string) {
	type objects struct{ path, looked string }
	todo := []objects{{filepath.Join(repository.Name, "objects"), filepath.Join(looked, "objects")}}
	for n := 0; n < len(todo) && n < mostBorrowed; n++ {
		dir := openDir(todo[n].path)
		if dir == nil {
			continue
		}
		text := textOf(dir, "info/alternates")
		dir.Close()
		for name := range strings.SplitSeq(text, "\n") {
			if name == "" || name[0] == '#' || name[0] == '"' { // git quotes what no flag could say either
				continue
			}
			path, looked := placeAt(name, todo[n].path, todo[n].looked)
			todo = append(todo, objects{path, looked})
			if len(todo) > mostBorrowed {
				break
			}
			f.objects(file, path, looked)
		}
	}
}

// objects notes a directory of objects that is not shown. It gets no flag: objects name no project back, and an agent that
// may write to this one could have a person show the whole history of another.
func (f *finder) objects(file, path, looked string) {
	if f.isShown(path, looked) {
		return
	}
	part := Part{File: file + "/objects/info/alternates", Path: path, Why: "that is no repository's directory of objects, and git has not all of its objects without it"}
	if of := openDir(filepath.Dir(path)); of != nil {
		if filepath.Base(path) == "objects" && isRepository(of) {
			part.Why = "it does not name this directory back, so that it may be another project's; git may lack objects without it"
		}
		of.Close()
	}
	f.addPart(part)
}
