package hostpath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Open opens a path again that Resolve has named, and follows no link on the way. It is a
// *LinkError, *TypeError or *ChangedError if the path leads elsewhere now.
func Open(name string, want Identity) (*Path, error) {
	rel := strings.TrimPrefix(filepath.Clean(name), "/")
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root) //nolint:errcheck // nothing was written to it
	fd, err := openBelow(root, rel)
	if err != nil {
		return nil, refusal(name, err)
	}
	return takeFD(fd, name, want)
}

// Below opens what lies in the directory, at a relative name, and follows no link.
func (p *Path) Below(rel string, want Identity) (*Path, error) {
	name := filepath.Join(p.Name, rel)
	fd, err := openBelow(p.Fd(), rel)
	if err != nil {
		return nil, refusal(name, err)
	}
	return takeFD(fd, name, want)
}

// takeFD takes what a descriptor is of, if that is what is wanted; a zero identity wants any.
func takeFD(fd int, name string, want Identity) (*Path, error) {
	p := &Path{Name: name, file: os.NewFile(uintptr(fd), name)}
	st, err := statFD(fd)
	if err == nil {
		p.ID, err = identity(fd, st)
	}
	switch {
	case errors.Is(err, errType):
		err = &TypeError{Path: name}
	case err != nil:
		err = &fs.PathError{Op: "stat", Path: name, Err: err}
	case !want.IsZero() && !want.Is(p.ID):
		err = &ChangedError{Path: name}
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// refusal says that a link was in the way, and which one as far as that can still be seen.
func refusal(name string, err error) error {
	if !errors.Is(err, unix.ELOOP) {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	link := name
	if _, links, err := Links(name); err == nil && len(links) > 0 {
		link = links[0]
	}
	return &LinkError{Path: name, Link: link}
}
