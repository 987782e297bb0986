package main

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// projectFiles are those of a project's directory, as package manifest reads them. Nothing is read, nor any directory listed,
// that a link has outside of it: whoever wrote the project would choose which files of the host are. Whether something is there
// is told. A sandbox, which has the project alone, finds nothing behind such a link.
type projectFiles string

// Read implements manifest.Files.
func (p projectFiles) Read(name string) ([]byte, error) {
	if name = path.Clean(name); name == ".." || strings.HasPrefix(name, "../") || path.IsAbs(name) {
		return nil, fault.Invalid("%s lies outside of the project", name)
	}
	at := p.at(name)
	file, err := p.open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil //nolint:nilnil // no file, no error
	case isOther(err):
		return nil, fault.Invalid("the project's file %s is not a file", at)
	case isBehindLink(err):
		return nil, err
	case err != nil:
		return nil, fault.Invalid("the project's file %s %s", at, because(err))
	}
	defer file.Close()
	return readOpen("project's file", at, file, mostOf(name))
}

// mostOf is how many bytes of a file of the project are read: lockfiles are larger than what people write.
func mostOf(name string) int64 {
	isLock := func(e pkgref.Ecosystem) bool {
		return slices.ContainsFunc(e.Lockfiles(), func(l pkgref.Lockfile) bool { return l.Name == name })
	}
	if lockfile.SaysOrigins(name) || slices.ContainsFunc(pkgref.Ecosystems(), isLock) {
		return lockfile.MaxBytes
	}
	return maxPolicy
}

// at is where a name of the project is on the host. A ".." in the project's own path stays in it: it climbs from where a link has
// led, as it does when the project itself is opened.
func (p projectFiles) at(name string) string {
	return string(p) + "/" + filepath.FromSlash(name)
}

// check refuses what is no directory: each file of it would be one that is not there.
func (p projectFiles) check() error {
	kind, err := kindNamed(string(p))
	switch {
	case isOther(err) || err == nil && kind != hostpath.Dir:
		return fault.Invalid("the project %s is not a directory", string(p))
	case err != nil:
		return fault.Invalid("the project %s %s", string(p), because(err))
	}
	return nil
}

// open opens a file or directory of the project. It is a *manifest.BehindLinkError where a link of the project's is on the way
// that leads out of it, or that an agent could have put there. Close it.
func (p projectFiles) open(name string) (*hostpath.Path, error) {
	opened, err := openNamed(p.at(name))
	link, refused := errors.AsType[*hostpath.LinkError](err)
	if err != nil && !refused {
		return nil, err
	}
	top, topErr := openNamed(string(p))
	if topErr != nil { // a link above the project, for one
		if opened != nil {
			opened.Close()
		}
		return nil, topErr
	}
	defer top.Close()
	switch {
	case refused && link.Tree == "/": // where agents may write is not known, and because says so
		return nil, err
	case refused && p.isAbsent(name):
		return nil, fs.ErrNotExist
	case refused:
		return nil, &manifest.BehindLinkError{Link: nameIn(top.Name, link.Link, name), Why: "an agent could have put it there"}
	case isIn(top.Name, opened.Name):
		return opened, nil
	}
	opened.Close()
	return nil, &manifest.BehindLinkError{Link: p.firstLink(top.Name, name), Why: "it leads out of the project"}
}

// isAbsent tells that a name leads nowhere, through whatever links.
func (p projectFiles) isAbsent(name string) bool {
	_, err := p.followed(name)
	return errors.Is(err, fs.ErrNotExist)
}

// firstLink is the first link of the project on the way to a name in it; the name itself where there is none any more.
func (p projectFiles) firstLink(top, name string) string {
	if at, err := fromHere(p.at(name)); err == nil {
		_, links, _ := hostpath.Links(at) // as far as it leads
		for _, link := range links {
			if isIn(top, link) {
				return nameIn(top, link, name)
			}
		}
	}
	return name
}

// isIn tells whether a path without links is a directory's own, or below it.
func isIn(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// nameIn is a path's name in a directory that it lies in; otherwise another one.
func nameIn(dir, path, otherwise string) string {
	if rest, err := filepath.Rel(dir, path); err == nil && isIn(dir, path) {
		return filepath.ToSlash(rest)
	}
	return otherwise
}

func isBehindLink(err error) bool {
	_, is := errors.AsType[*manifest.BehindLinkError](err)
	return is
}

// isOther tells of a refusal of what is neither a file nor a directory.
func isOther(err error) bool {
	_, is := errors.AsType[*hostpath.TypeError](err)
	return is
}

// isFolder tells of a directory, through whatever links.
func (p projectFiles) isFolder(name string) bool {
	kind, err := p.followed(name)
	return err == nil && kind == hostpath.Dir
}

// hasNoFolder tells that there is surely no directory of a name, through whatever links: also of one that can't be looked into, it
// is known that it is there.
func (p projectFiles) hasNoFolder(name string) bool {
	kind, err := p.followed(name)
	return errors.Is(err, fs.ErrNotExist) || isOther(err) || err == nil && kind != hostpath.Dir
}

// followed tells what a name leads to, through every link. It is not to be read.
func (p projectFiles) followed(name string) (hostpath.Type, error) {
	at, err := fromHere(p.at(name))
	if err != nil {
		return "", err
	}
	found, err := hostpath.Follow(at)
	if err != nil {
		return "", err
	}
	defer found.Close()
	return found.ID.Type, nil
}

// mostNames is how many names of a directory are looked at.
const mostNames = 20_000

// Folders implements manifest.Files.
func (p projectFiles) Folders(name string) (dirs, links []string, err error) {
	entries, err := p.entries(name)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		switch {
		case e.IsDir():
			dirs = append(dirs, e.Name())
		case e.Type()&fs.ModeSymlink != 0 && !p.hasNoFolder(path.Join(name, e.Name())):
			links = append(links, e.Name())
		}
	}
	slices.Sort(dirs)
	slices.Sort(links)
	return dirs, links, nil
}

// entries are those of a directory of the project, sorted by name; none where it is no directory.
func (p projectFiles) entries(name string) ([]fs.DirEntry, error) {
	dir, err := p.open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || isOther(err):
		return nil, nil
	case isBehindLink(err):
		return nil, err
	case err != nil:
		return nil, fault.Invalid("the directory %s %s", p.at(name), because(err))
	}
	defer dir.Close()
	if dir.ID.Type != hostpath.Dir {
		return nil, nil
	}
	root, err := dir.Root()
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // a directory handle
	listed, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer listed.Close()
	entries, err := listed.ReadDir(mostNames + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > mostNames { // a member that nobody sees is one whose name is taken for a registry's
		return nil, fault.Invalid("the directory %s has more than %d names, of which files of the project may be any", p.at(name), mostNames)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}
