// Package workspace gives a sandbox a copy of a directory in the directory's place, finds
// what was changed in the copy, and brings over what a person picks.
//
// The original is the person's directory, and the sandbox has the copy. A list tells how both were
// when the copy was made. Changes since are files that are new, other or gone. One is in conflict
// if the original's file is not as it was.
//
// A worker in the copy is hostile. The copy's content is data: names that are checked, links that are
// never followed, and modes of which nothing but the right to execute is taken over. Changes are
// found by what the host's kernel notes of each file (its number, size, and the time of its last
// change of any kind), which nobody inside can set. All processes inside must be gone when changes
// are looked for or applied.
package workspace

import (
	"io/fs"
	"syscall"
)

// Kind is what a path is.
type Kind string

// Kinds. Anything else (devices, sockets, pipes) is left out of copies and never brought over.
const (
	File Kind = "file"
	Dir  Kind = "dir"
	Link Kind = "link"
)

// Stamp is how a file was at a time: what differs if it was written, replaced, or had its
// mode changed.
type Stamp struct {
	Inode   uint64 `json:"i"`
	Size    int64  `json:"s"`
	Mode    uint32 `json:"m"` // permission bits
	Changed int64  `json:"c"` // nanoseconds, by the kernel
}

// Entry is a path of the list.
type Entry struct {
	Kind     Kind   `json:"kind"`
	Target   string `json:"target,omitempty"` // of a link
	Original Stamp  `json:"original"`
	Copy     Stamp  `json:"copy"`
}

// sameAs tells whether nothing was done to a file between two stamps.
func (s Stamp) sameAs(other Stamp) bool { return s == other }

// stampOf is how a file is.
func stampOf(info fs.FileInfo) Stamp {
	s := Stamp{Size: info.Size(), Mode: uint32(info.Mode().Perm())}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Inode, s.Changed = sys.Ino, sys.Ctim.Nano()
	}
	return s
}

// kindOfMode is what a file is; "" for what has no place in a copy.
func kindOfMode(mode fs.FileMode) Kind {
	switch {
	case mode.IsRegular():
		return File
	case mode.IsDir():
		return Dir
	case mode&fs.ModeSymlink != 0:
		return Link
	}
	return ""
}
