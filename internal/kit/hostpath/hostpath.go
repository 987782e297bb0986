// Package hostpath opens paths of the host once: component by component, each by the
// descriptor of the one before, so that nobody who may rename or link something on the way
// decides afterwards what was opened.
//
// The identity of a file or directory stays the same under another name, and is another of whatever
// takes its name. Somebody whom the caller does not trust may write to a tree, so a link in it is
// not followed.
package hostpath

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Type is what a path leads to.
type Type string

// The types. Everything else, such as a socket, a named pipe or a device, is refused.
const (
	Dir  Type = "dir"
	File Type = "file"
)

// Identity tells one file or directory from all others of this host.
type Identity struct {
	Type   Type   `json:"type"`
	Device uint64 `json:"device,omitempty"`
	Inode  uint64 `json:"inode,omitempty"` // 0: any of the type
	// Birth is when it was made, in nanoseconds since 1970, which tells a file from one
	// that got its inode later; 0 where the file system does not say.
	Birth int64 `json:"birth,omitempty"`
}

// IsZero tells whether nothing is known.
func (i Identity) IsZero() bool { return i == Identity{} }

// Kind is the identity of any file or directory of the same type.
func (i Identity) Kind() Identity { return Identity{Type: i.Type} }

// Is tells whether now is the same file or directory, or with an identity of a type alone
// any of that type.
func (i Identity) Is(now Identity) bool { return i == now || i.Type == now.Type && i.Inode == 0 }

// IsAfterBoot is Is for an identity that may be older than the host's last start, which
// gives some devices other numbers. Without a time of birth the number must be the same.
func (i Identity) IsAfterBoot(now Identity) bool {
	if i.Birth != 0 {
		i.Device = now.Device
	}
	return i.Is(now)
}

// Path is an open file or directory. Close it.
type Path struct {
	Name string // absolute, without links
	ID   Identity

	file *os.File // O_PATH
}

// LinkError is the refusal to follow a link.
type LinkError struct {
	Path string // that was asked for
	Link string // on the way
	Tree string // in which the link lies, where a sandbox of this installation may write or could
	// Stranger is where somebody else may have put the link, of whose sandboxes nothing is known. Without it and
	// Tree no link at all is followed on this way.
	Stranger *Stranger
}

func (e *LinkError) Error() string {
	if e.Tree == "" && e.Stranger == nil {
		return fmt.Sprintf("%s leads through the link %s, and led through none when it was looked at", e.Path, e.Link)
	}
	return fmt.Sprintf("%s leads through %s", e.Path, e.Reason())
}

// Reason says which link is not followed, and why: a sentence's part.
func (e *LinkError) Reason() string {
	if e.Stranger != nil {
		return fmt.Sprintf("the link %s, and %s, whose agents are not known here, so that an agent could have put it there", e.Link, e.Stranger)
	}
	return fmt.Sprintf("%s, a link under %s, which some sandbox was given to write to, so that an agent could have put it there", e.Link, e.Tree)
}

// TypeError is the refusal of what is neither a file nor a directory.
type TypeError struct{ Path string }

func (e *TypeError) Error() string {
	return e.Path + " is neither a file nor a directory"
}

// ChangedError is the refusal of a file or directory that has another one's name now.
type ChangedError struct{ Path string }

func (e *ChangedError) Error() string {
	return e.Path + " is another file or directory than the one that was looked at"
}

// Close gives the descriptor back.
func (p *Path) Close() {
	_ = p.file.Close() // nothing was written to it
}

// Fd is the descriptor (O_PATH), until Close.
func (p *Path) Fd() int { return int(p.file.Fd()) }

// File is the descriptor, to be handed to another process; Close closes it.
func (p *Path) File() *os.File { return p.file }

// Proc is a name that leads to what is open in this process alone, until Close.
func (p *Path) Proc() string { return "/proc/self/fd/" + strconv.Itoa(p.Fd()) }

// Root is the directory, for reading below it.
func (p *Path) Root() (*os.Root, error) { return os.OpenRoot(p.Proc()) }

// Reader opens the file for reading. Close it.
func (p *Path) Reader() (*os.File, error) {
	if p.ID.Type != File {
		return nil, &fs.PathError{Op: "read", Path: p.Name, Err: unix.EISDIR}
	}
	fd, err := unix.Open(p.Proc(), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: p.Name, Err: err}
	}
	return os.NewFile(uintptr(fd), p.Name), nil
}

// ReadFile reads the file, of at most a number of bytes.
func (p *Path) ReadFile(most int64) ([]byte, error) {
	f, err := p.Reader()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAtMost(f, p.Name, most)
}

// mostLinks is how many links a path may lead through; the kernel's own bound.
const mostLinks = 40

// Resolve opens a path, and follows links where nobody may have put one: not below a tree, and only those of root and of
// this process's user, where nobody else may write: a tree is what this installation knows of, and another user's
// agents are known to theirs. It is a *LinkError where there is one, and a *TypeError for what is neither a file nor a
// directory.
func Resolve(path string, trees []Tree) (*Path, error) {
	w, err := beginWalk(path, trees)
	if err != nil {
		return nil, err
	}
	return w.openEnd()
}

// Follow is Resolve through every link, whoever put it there: for places of Cofferdam's own, and for who asks where a name
// leads to guard what is there, and would guard less if it were not followed.
func Follow(path string) (*Path, error) {
	w, err := beginWalk(path, nil)
	if err != nil {
		return nil, err
	}
	w.follows = true
	return w.openEnd()
}

// openEnd goes to the path's end, and closes the walk.
func (w *pathWalk) openEnd() (*Path, error) {
	path := w.path
	defer w.closeWalk()
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		target, err := w.stepTo(rest[0])
		if err != nil {
			return nil, err
		}
		rest = append(target, rest[1:]...)
	}
	return w.endPath()
}

// beginWalk begins a walk at the root, to an absolute path. The caller closes it.
func beginWalk(path string, trees []Tree) (*pathWalk, error) {
	if !filepath.IsAbs(path) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.EINVAL}
	}
	w := &pathWalk{path: path, trees: trees}
	return w, w.enterName("/", unix.AT_FDCWD)
}

// Links are the links that a path leads through, by their own places, as far as it leads
// anywhere.
func Links(path string) (resolved string, links []string, err error) {
	if resolved, links, err = leadsTo(path); err != nil {
		resolved = ""
	}
	return resolved, links, err
}

// leadsTo is Links, which of a path that leads nowhere also returns where somebody would have to make it.
func leadsTo(path string) (resolved string, links []string, err error) {
	w := &pathWalk{path: path, follows: true}
	defer w.closeWalk()
	if err := w.enterName("/", unix.AT_FDCWD); err != nil {
		return filepath.Clean(path), nil, err
	}
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		target, err := w.stepTo(rest[0])
		if err != nil {
			return filepath.Join(append([]string{w.placeHere().name}, rest...)...), w.links, err
		}
		rest = append(target, rest[1:]...)
	}
	return w.placeHere().name, w.links, nil
}

// pathWalk is the way to a path.
type pathWalk struct {
	path  string
	trees []Tree
	// follows has every link followed. Nobody sets it by a parameter, so that a new caller is guarded.
	follows bool
	stack   []walkPlace // from the root to where the walk is
	links   []string
	// notes has others looked for at each link that is followed; other is the first that was found.
	notes bool
	other *Stranger
}

type walkPlace struct {
	name string
	fd   int
	stat unix.Statx_t
}

func (w *pathWalk) placeHere() walkPlace { return w.stack[len(w.stack)-1] }

func (w *pathWalk) closeWalk() {
	for _, p := range w.stack {
		_ = unix.Close(p.fd) // nothing was written to it
	}
}

// enterName opens a name in a directory, and goes there; a link is itself.
func (w *pathWalk) enterName(name string, in int) error {
	full := name
	if len(w.stack) > 0 {
		full = filepath.Join(w.placeHere().name, name)
	}
	fd, err := unix.Openat(in, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: full, Err: err}
	}
	p := walkPlace{name: full, fd: fd}
	if p.stat, err = statFD(fd); err != nil {
		_ = unix.Close(fd)
		return &fs.PathError{Op: "stat", Path: full, Err: err}
	}
	w.stack = append(w.stack, p)
	return nil
}

func (w *pathWalk) leaveDir() {
	_ = unix.Close(w.placeHere().fd)
	w.stack = w.stack[:len(w.stack)-1]
}

// stepTo goes to the next name. Of a link it returns where that leads.
func (w *pathWalk) stepTo(name string) (target []string, err error) {
	switch name {
	case "", ".":
		return nil, nil
	case "..":
		if len(w.stack) > 1 {
			w.leaveDir()
		}
		return nil, nil
	}
	if err := w.enterName(name, w.placeHere().fd); err != nil {
		return nil, err
	}
	link := w.placeHere()
	if link.stat.Mode&unix.S_IFMT != unix.S_IFLNK {
		return nil, nil
	}
	to, err := readlink(link.fd)
	if err != nil {
		return nil, &fs.PathError{Op: "readlink", Path: link.name, Err: err}
	}
	w.leaveDir()
	if err := w.mayFollow(link); err != nil {
		return nil, err
	}
	if w.links = append(w.links, link.name); len(w.links) > mostLinks {
		return nil, &fs.PathError{Op: "open", Path: w.path, Err: unix.ELOOP}
	}
	if filepath.IsAbs(to) {
		for len(w.stack) > 1 {
			w.leaveDir()
		}
	}
	return strings.Split(to, "/"), nil
}

// mayFollow refuses a link of the directory that the walk is in, if somebody else could have put it there.
func (w *pathWalk) mayFollow(link walkPlace) error {
	if w.follows {
		if !w.notes || w.other != nil {
			return nil
		}
		var err error
		w.other, err = w.stranger(link)
		return err
	}
	tree, ok, err := w.treeWithin()
	if err != nil {
		return err
	}
	if ok {
		return &LinkError{Path: w.path, Link: link.name, Tree: tree.Path}
	}
	other, err := w.stranger(link)
	if err == nil && other != nil {
		err = &LinkError{Path: w.path, Link: link.name, Stranger: other}
	}
	return err
}

// treeWithin is the tree that the walk is in: by what the directories on the way are, or by where
// the walk lies, since a part of a tree may be mounted elsewhere, too.
func (w *pathWalk) treeWithin() (Tree, bool, error) {
	if len(w.trees) == 0 {
		return Tree{}, false, nil
	}
	for _, p := range w.stack {
		id, err := identity(p.fd, p.stat)
		for _, t := range w.trees {
			if err != nil && t.Path == p.name || err == nil && t.hasRoot(p.name, id) {
				return t, true, nil
			}
		}
	}
	table, err := ReadTable()
	if err != nil {
		return Tree{}, false, err
	}
	for _, t := range w.trees {
		if _, below := table.NameUnder(w.placeHere().name, t.Path); below {
			return t, true, nil
		}
	}
	return Tree{}, false, nil
}

// endPath returns where the walk has led.
func (w *pathWalk) endPath() (*Path, error) {
	p := w.placeHere()
	id, err := identity(p.fd, p.stat)
	if err != nil {
		return nil, &TypeError{Path: p.name}
	}
	w.stack = w.stack[:len(w.stack)-1] // the descriptor is the caller's
	return &Path{Name: p.name, ID: id, file: os.NewFile(uintptr(p.fd), p.name)}, nil
}
