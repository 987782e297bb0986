// Package written keeps which directories and files of the host sandboxes were ever given to write to.
// Somebody inside may have left a link in a directory, and that link is there when its sandbox, and the
// daemon that made it, have long ended. So nobody follows links there, then or later. Their content
// decides nothing that nobody has seen, and a file may have been mounted by itself.
//
// The record is a file of lines, each a directory or a file in JSON. It only grows, up to a bound; then
// those leave it that are not where they were.
package written

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// mostTrees is how many directories are kept, and mostBytes how large their file may be.
const (
	mostTrees = 4096
	mostBytes = 64 << 20
)

// fileLine is a directory as the file has it.
type fileLine struct {
	Path string            `json:"path"`
	ID   hostpath.Identity `json:"id"`
	// Covered: see hostpath.Tree. A directory has a line for each way in which it was covered.
	Covered string `json:"covered,omitempty"`
	Marks   string `json:"marks,omitempty"`
}

// Record has the directories. Safe for concurrent use, by one process at a time.
type Record struct {
	path string
	most int

	mu    sync.Mutex // guards what follows, and the file
	trees []hostpath.Tree
	torn  bool // the file may end in the middle of a line
}

// Open reads the record at a path, or begins it. One that can't be read is fault.ErrUnavailable:
// without it nobody knows where agents may have left links.
func Open(path string) (*Record, error) {
	trees, torn, err := readTrees(path)
	if err != nil {
		return nil, err
	}
	// The daemon before may have ended in the middle of a line, and had told nobody that it is there.
	return &Record{path: path, most: mostTrees, trees: trees, torn: torn}, nil
}

// Read is what a record has, for who does not write it; none if there is no record.
func Read(path string) ([]hostpath.Tree, error) {
	trees, _, err := readTrees(path)
	return trees, err
}

// OrAnywhere is Read for who looks for what to keep away from: where the record can't be read it is
// everywhere.
func OrAnywhere(path string) []hostpath.Tree {
	trees, err := Read(path)
	if err != nil {
		return []hostpath.Tree{{Path: "/"}}
	}
	return trees
}

// Trees are all directories and files that sandboxes were ever given to write to.
func (r *Record) Trees() []hostpath.Tree {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.trees)
}

// Add keeps directories and files, durably, before anybody inside may write to them. Once there are as
// many as are kept, those leave that are not where they were; if none is, it is
// fault.ErrConflict.
func (r *Record) Add(trees []hostpath.Tree) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var fresh []hostpath.Tree
	for _, t := range trees {
		if !slices.Contains(r.trees, t) && !slices.Contains(fresh, t) {
			fresh = append(fresh, t)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if len(r.trees)+len(fresh) > r.most {
		kept := slices.DeleteFunc(slices.Clone(r.trees), isGone)
		if len(kept)+len(fresh) > r.most {
			return fault.New(fault.ErrConflict, "sandboxes were given %d directories of this host to write to, and no more are kept in %s, so that links which agents left in them are known: remove directories that nobody needs, or mount one that holds several", r.most, r.path)
		}
		return r.rewrite(append(kept, fresh...))
	}
	if r.torn {
		return r.rewrite(append(slices.Clone(r.trees), fresh...))
	}
	return r.extend(fresh)
}

// Replace puts trees in the place of others, durably, those that it has: a sandbox that could write in them runs
// no more, or what was covered in them is not what it was.
func (r *Record) Replace(was, now []hostpath.Tree) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(r.trees), func(t hostpath.Tree) bool { return slices.Contains(was, t) })
	if len(kept) == len(r.trees) {
		return nil
	}
	for _, t := range now {
		if !slices.Contains(kept, t) {
			kept = append(kept, t)
		}
	}
	return r.rewrite(kept)
}

// isGone tells whether something else, or nothing, is where a directory was. Some devices get
// another number when the host starts, so that the number alone tells of no other directory.
func isGone(t hostpath.Tree) bool {
	p, err := hostpath.Open(t.Path, hostpath.Identity{})
	if err == nil {
		defer p.Close()
		t.ID.Device = p.ID.Device
		return !t.ID.Is(p.ID)
	}
	_, link := errors.AsType[*hostpath.LinkError](err)
	_, neither := errors.AsType[*hostpath.TypeError](err)
	return link || neither || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}

// extend appends to the file. The caller has r.mu.
func (r *Record) extend(fresh []hostpath.Tree) error {
	file, err := os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return r.rewrite(append(slices.Clone(r.trees), fresh...))
	}
	if err != nil {
		return unwritten(err)
	}
	if _, err = file.Write(textOf(fresh)); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		r.torn = true // half a line would spoil the next
		return unwritten(err)
	}
	r.trees = append(r.trees, fresh...)
	return nil
}

// rewrite replaces the file. The caller has r.mu, or the only reference.
func (r *Record) rewrite(trees []hostpath.Tree) error {
	if err := atomicfile.Replace(r.path, textOf(trees), 0o600); err != nil {
		return unwritten(err)
	}
	r.trees, r.torn = trees, false
	return nil
}

func unwritten(err error) error {
	return fault.Wrap(fault.ErrUnavailable, err, "where sandboxes may write can't be kept, so that none is given a directory of the host")
}

func textOf(trees []hostpath.Tree) []byte {
	var text bytes.Buffer
	for _, t := range trees {
		data, _ := json.Marshal(fileLine(t)) // strings and numbers
		text.Write(append(data, '\n'))
	}
	return text.Bytes()
}

// readTrees reads the file. torn tells that its end is no whole line.
func readTrees(path string) (trees []hostpath.Tree, torn bool, err error) {
	text, err := contents(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, unreadable(path, err)
	}
	for at := range bytes.Lines(text) {
		if !bytes.HasSuffix(at, []byte("\n")) {
			return trees, true, nil
		}
		var l fileLine
		if err := json.Unmarshal(at, &l); err != nil || l.Path == "" {
			return nil, false, unreadable(path, fmt.Errorf("the line %.80q is no directory", at))
		}
		trees = append(trees, hostpath.Tree(l))
	}
	return trees, false, nil
}

// contents reads the file, which lies in the installation's own directory, and is no link.
func contents(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Size() > mostBytes:
		return nil, fmt.Errorf("it has more than %d bytes", mostBytes)
	}
	return io.ReadAll(io.LimitReader(file, mostBytes))
}

func unreadable(path string, err error) error {
	return fault.Wrap(fault.ErrUnavailable, err, "%s, which has the directories that sandboxes could write to, can't be read; put it back from a copy, or move it away if no agent can have left a link in any directory that you mount", path)
}
