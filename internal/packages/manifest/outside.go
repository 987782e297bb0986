package manifest

import (
	"path"
	"strings"
)

// Outside is a directory that a manifest names and that lies outside of the project.
type Outside struct {
	File string // the manifest
	Path string // absolute, or from the project's directory, and then with .. in front; clean, with slashes. It may be anything
}

// maxOutside bounds how many are noted; whoever wants to know of them has seen enough by then.
const maxOutside = 100

// NoteFolder notes a directory, as a manifest has it, from its own one. One of the project is not noted, nor one in somebody's home
// (~), which a sandbox has of its own.
func (w *Wants) NoteFolder(file, place string) {
	at := path.Clean(place)
	if !path.IsAbs(place) {
		at = path.Join(path.Dir(file), place)
	}
	inside := !path.IsAbs(at) && at != ".." && !strings.HasPrefix(at, "../")
	if place == "" || inside || strings.HasPrefix(place, "~") || len(w.outside) == maxOutside {
		return
	}
	w.outside = append(w.outside, Outside{file, at})
}

// Outside are the directories that NoteFolder was told of.
func (w *Wants) Outside() []Outside { return w.outside }
