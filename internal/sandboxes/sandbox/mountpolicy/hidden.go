package mountpolicy

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/privatefile"
)

// Bounds of the record: how many directories with an ignore file it has, what each hides, and the
// size in bytes.
const (
	mostHiding     = 4096
	mostHidden     = 4000
	mostHidingFile = 256 << 20
)

// Hidden keeps what ignore files have hidden, by what it is. A sandbox that may write to a
// directory can rename one in it, so that a pattern names something else, or nothing, in the next sandbox: what was hidden
// stays hidden under another name, as long as the ignore file says what it said. Safe for concurrent
// use, by one process at a time.
type Hidden struct {
	path    string
	most    int // directories
	mostIDs int // of what one hides, beside what it hides now

	mu  sync.Mutex // guards what follows, and the file
	all []hiding
}

// hiding is what the ignore file of one directory hides.
type hiding struct {
	Source hostpath.Identity   `json:"source"`
	Path   string              `json:"path"`   // where it was
	Ignore string              `json:"ignore"` // a digest of the ignore file
	IDs    []hostpath.Identity `json:"ids"`
}

// isGone tells of a directory that is not there any more, as those of tests and of old checkouts are.
func (h hiding) isGone() bool {
	dir, err := hostpath.Open(h.Path, hostpath.Identity{})
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer dir.Close()
	return !h.Source.IsAfterBoot(dir.ID)
}

// OpenHidden reads the record at a path, or begins it. One that can't be read is fault.ErrUnavailable:
// without it nobody knows what is to be hidden.
func OpenHidden(path string) (*Hidden, error) {
	h := &Hidden{path: path, most: mostHiding, mostIDs: mostHidden}
	file, err := privatefile.ReadTrusted("the record of what ignore files hide", path, mostHidingFile, nil) // in the state, which no sandbox is shown
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err == nil {
		err = json.Unmarshal(file.Data, &h.all)
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "%s, which has what ignore files hide, can't be read; put it back from a copy, or move it away if no agent can have renamed a directory that has hidden files in it", path)
	}
	return h, nil
}

// changed tells whether a directory's ignore file has hidden something, and says something else now, or is gone.
func (h *Hidden) changed(source hostpath.Identity, ignore string) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.all, func(one hiding) bool { return one.Ignore != ignore && one.Source.IsAfterBoot(source) })
}

// hiddenOf is what a directory's ignore file has hidden before, if it said what it says.
func (h *Hidden) hiddenOf(source hostpath.Identity, ignore string) []hostpath.Identity {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.all {
		if one.Ignore == ignore && one.Source.IsAfterBoot(source) {
			return slices.Clone(one.IDs)
		}
	}
	return nil
}

// errManyParts is of what an ignore file hides in a part of its directory: with what it hides elsewhere it is too much.
var errManyParts = errors.New("too much is hidden")

// hiddenDirs are the directories whose ignore files have hidden something, where they were then.
func (h *Hidden) hiddenDirs() (all []string) {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.all {
		all = append(all, one.Path)
	}
	return all
}

// keepHidden notes, durably, what an ignore file hides, beside what it has hidden before. Files that
// another text of it has hidden are forgotten: somebody has changed it who may (Rules.Seen). part tells that
// these are of a part of the directory; errManyParts if they are too many with the others.
func (h *Hidden) keepHidden(dir hostpath.Tree, ignore string, ids []hostpath.Identity, part bool) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.IndexFunc(h.all, func(one hiding) bool { return one.Source.IsAfterBoot(dir.ID) })
	now := hiding{Source: dir.ID, Path: dir.Path, Ignore: ignore, IDs: ids}
	if at >= 0 && h.all[at].Ignore == ignore {
		if now.IDs = unionOf(ids, h.all[at].IDs); len(now.IDs) > h.mostIDs {
			if part {
				return errManyParts
			}
			now.IDs = ids // without those that are there no more, as when a build makes them anew
		}
		if len(now.IDs) == len(h.all[at].IDs) && h.all[at].Source == dir.ID {
			return nil
		}
	}
	all := slices.Clone(h.all)
	if at < 0 && len(ids) > 0 && len(all) >= h.most {
		all = slices.DeleteFunc(all, hiding.isGone)
	}
	switch {
	case at >= 0 && len(ids) == 0 && len(now.IDs) == 0:
		all = slices.Delete(all, at, at+1)
	case at >= 0:
		all[at] = now
	case len(ids) == 0:
		return nil
	case len(all) >= h.most:
		return fault.New(fault.ErrConflict, "%d directories with ignore files were mounted, and what no more hide is kept in %s: move that away if no agent can have renamed a directory that has hidden files in it", h.most, h.path)
	default:
		all = append(all, now)
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = atomicfile.Replace(h.path, text, 0o600)
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "what an ignore file hides can't be kept, so that its directory is not shown")
	}
	h.all = all
	return nil
}

// unionOf is a list with what another has besides.
func unionOf(ids, others []hostpath.Identity) []hostpath.Identity {
	for _, id := range others {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
