package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// A path that a person names on the command line may lie in a directory that an agent was given
// to write to, in a run that has long ended, and an agent may have left a link there. So such
// paths are opened here, and nowhere else: once, by descriptors, and through no link in such a
// directory.

// agentTrees are the directories in which agents may have left links. If that is not known it is
// everywhere, so that no link is followed at all.
func agentTrees() []hostpath.Tree {
	paths, err := config.DefaultPaths()
	if err != nil {
		return []hostpath.Tree{{Path: "/"}}
	}
	return written.OrAnywhere(paths.Written())
}

// recordedTrees are the directories that this user's sandboxes were ever given to write to.
func recordedTrees() ([]hostpath.Tree, error) {
	paths, err := config.DefaultPaths()
	if err != nil {
		return nil, err
	}
	return written.Read(paths.Written())
}

// fromHere makes a path absolute, from the directory that this process is in, whatever a
// variable says of that. A ".." is left in it: it climbs from where a link has led.
func fromHere(path string) (string, error) {
	if path == "" {
		return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
	}
	if filepath.IsAbs(path) {
		return path, nil
	}
	cwd, err := syscall.Getwd()
	if err != nil {
		return "", noDirectory(err)
	}
	return cwd + "/" + path, nil
}

// openNamed opens a file or directory that a person names. Close it.
func openNamed(path string) (*hostpath.Path, error) {
	at, err := fromHere(path)
	if err != nil {
		return nil, err
	}
	return hostpath.Resolve(at, agentTrees())
}

// findNamed finds where a file is, or is to be, that a person names.
func findNamed(path string) (hostpath.Entry, error) {
	at, err := fromHere(path)
	if err != nil {
		return hostpath.Entry{}, err
	}
	return hostpath.Find(at, agentTrees())
}

// rootNamed opens a directory that a person names, for what is below it; made says that it is
// made if it is not there, with what the person's umask leaves of all rights, as cp does.
func rootNamed(path string, made bool) (*os.Root, error) {
	at, err := fromHere(path)
	if err != nil {
		return nil, err
	}
	var dir *hostpath.Path
	if made {
		dir, err = hostpath.MakeDirs(at, 0o777, agentTrees())
	} else {
		dir, err = hostpath.Resolve(at, agentTrees())
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Root()
}

// kindNamed tells what a path leads to that a person names; it is fs.ErrNotExist where it leads
// nowhere.
func kindNamed(path string) (hostpath.Type, error) {
	p, err := openNamed(path)
	if err != nil {
		return "", err
	}
	defer p.Close()
	return p.ID.Type, nil
}

// readDocument reads a small file of the host whole; what it is goes into the
// messages.
func readDocument(what, path string, most int64) ([]byte, error) {
	p, err := openNamed(path)
	if _, other := errors.AsType[*hostpath.TypeError](err); other {
		return nil, fault.Invalid("the %s %s is not a file", what, path)
	}
	if err != nil {
		return nil, fault.Invalid("the %s %s %s", what, path, because(err))
	}
	defer p.Close()
	return readOpen(what, path, p, most)
}

// readOpen reads a document, as readDocument does, from what is open.
func readOpen(what, path string, p *hostpath.Path, most int64) ([]byte, error) {
	if p.ID.Type != hostpath.File {
		return nil, fault.Invalid("the %s %s is not a file", what, path)
	}
	file, err := p.Reader()
	if err != nil {
		return nil, fault.Invalid("the %s %s %s", what, path, because(err))
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > most {
		return nil, fault.Invalid("the %s %s has %d bytes; the limit is %d", what, path, info.Size(), most)
	}
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, fault.Invalid("the %s %s %s", what, path, because(err))
	case int64(len(data)) > most:
		return nil, fault.Invalid("the %s %s is larger than %d bytes", what, path, most)
	}
	return data, nil
}

// because says in words why a file could not be had.
func because(err error) string {
	if link, ok := errors.AsType[*hostpath.LinkError](err); ok && link.Tree == "/" {
		_, err := recordedTrees()
		return fmt.Sprintf("leads through the link %s, and where agents could leave links is not known; name what it leads to (%v)", link.Link, err)
	} else if ok {
		return fmt.Sprintf("leads through %s; name what it leads to", link.Reason())
	}
	switch {
	case errors.Is(err, hostpath.ErrDangling):
		return "is a link that leads to nothing; name what it is to lead to"
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "can't be read: permission denied"
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return fmt.Sprintf("can't be read: %s", err)
}
