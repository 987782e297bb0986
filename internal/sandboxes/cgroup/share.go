package cgroup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// shareSuffix tells the groups of shares from those of sandboxes, whose ids have no
// dot.
const shareSuffix = ".share"

// shareDir is the directory of a share: a name of any length and letters.
func shareDir(share string) string {
	digest := sha256.Sum256([]byte(share))
	return hex.EncodeToString(digest[:8]) + shareSuffix
}

// shares lists the directories of those that there are.
func (h *Hierarchy) shares() (dirs []string) {
	for _, parent := range h.parents() {
		entries, err := os.ReadDir(parent)
		if err != nil {
			continue // a parent goes with its last group
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), shareSuffix) && !slices.Contains(dirs, e.Name()) {
				dirs = append(dirs, e.Name())
			}
		}
	}
	return dirs
}

// prepareShare makes a share's groups where they are not there yet. The kernel divides
// the processors evenly between the shares that want them.
func (h *Hierarchy) prepareShare(share string) error {
	for _, p := range h.places {
		if p.missing != "" {
			continue
		}
		dir := filepath.Join(p.parent, shareDir(share))
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // Limits are no secret, and others' tools read them.
			return err
		}
		if p.version == 2 {
			if err := enableControllers(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// weighParent gives the parent the weight of one busy process on each processor. With the
// kernel's own weight all sandboxes together had that of one process, whatever the
// number of processors, and starved beside anything that is busy. A hierarchy without
// the file divides as the kernel does.
func weighParent(version int, parent string) {
	file, value := "cpu.shares", 1024*runtime.NumCPU()
	if version == 2 {
		file, value = "cpu.weight", min(100*runtime.NumCPU(), 10000)
	}
	path := filepath.Join(parent, file)
	if err := unix.Access(path, unix.W_OK); err == nil {
		_ = writeControl(path, strconv.Itoa(value)) // as above: a division, not a limit
	}
}
