package authority

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// leaving is before the name of a folder that is being removed.
const leaving = ".leaving-"

// Tidy removes the authorities of sets of hosts that were last used before a time, but for
// those of spared: what anything that lives, or can be made to live again, trusts. A set
// that is asked for after that gets another authority.
func (h *Hosts) Tidy(before time.Time, spared [][]string) (removed int, err error) {
	keep := map[string]bool{}
	for _, hosts := range spared {
		if set, _, err := setOfHosts(hosts); err == nil { // else none was ever made for them
			keep[set] = true
		}
	}
	folders, err := os.ReadDir(h.dir)
	if err != nil {
		return 0, fault.Wrap(fault.ErrUnavailable, err, "the folder of the certificate authorities can't be read")
	}
	var errs []error
	for _, folder := range folders {
		gone, err := h.tidyFolder(folder, before, keep)
		if gone {
			removed++
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// tidyFolder removes one of them, if it is to go. A half-removed authority is none any more.
func (h *Hosts) tidyFolder(folder fs.DirEntry, before time.Time, keep map[string]bool) (gone bool, err error) {
	set := folder.Name()
	path := filepath.Join(h.dir, set)
	if folder.IsDir() && strings.HasPrefix(set, leaving) {
		return false, os.RemoveAll(path)
	}
	if _, err := hex.DecodeString(set); err != nil || !folder.IsDir() || keep[set] {
		return false, nil // it is none of ours, or spared
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	info, err := os.Stat(path)
	if k := h.by[set]; err != nil || k != nil && k.users > 0 || !info.ModTime().Before(before) {
		return false, err
	}
	left := filepath.Join(h.dir, leaving+set)
	if err := os.Rename(path, left); err != nil {
		return false, err
	}
	delete(h.by, set)
	h.leaves.Clear() // some may be of this one
	return true, os.RemoveAll(left)
}
