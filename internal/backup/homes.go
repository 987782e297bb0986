package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/hostpath/treewalk"
)

// mostHoles is how many bytes of holes in the files of one home are written as zeros. A file of
// any size costs who makes it nothing, and would fill the disk of whoever copies it.
const mostHoles = 1 << 30

// home is the one that is being copied. What is in it is an agent's, and no agent may decide
// whether there is a backup: what can't be copied is left out, and the report says so.
type home struct {
	name  string            // of its directory
	why   []string          // it is not whole, in words
	holes int64             // bytes of its files that are no data
	links map[fileID]string // the first name of each file that has several
}

type fileID struct{ dev, ino uint64 }

// lacks notes that a home is not whole. A nil home is the installation's own part, which must be.
func (h *home) lacks(why string) bool {
	if h != nil && !slices.Contains(h.why, why) {
		h.why = append(h.why, why)
	}
	return h != nil
}

// homes copies each home by itself.
func (b *writer) homes(ctx context.Context) error {
	if slices.Contains(b.out, Homes) {
		return nil
	}
	if to, err := b.target(Homes); err != nil || to != "" {
		return errors.Join(err, b.elsewhere(Homes, to))
	}
	var found []string
	err := treewalk.Walk(ctx, b.state, Homes, bounds(), func(name string, d fs.DirEntry, err error) error {
		switch {
		case gone(err):
			return nil
		case err != nil:
			return b.unread(name, err)
		case strings.Count(name, "/") == 2 && d.IsDir(): // homes/UID/NAME
			found = append(found, name)
			return fs.SkipDir
		}
		return b.entry(ctx, name, d)
	})
	if err := b.walked(Homes, err); err != nil {
		return err
	}
	for _, name := range found {
		b.home = &home{name: name, links: map[fileID]string{}}
		err := b.files(ctx, name)
		for _, why := range b.home.why {
			b.report.NotWhole = append(b.report.NotWhole, name+" "+why)
		}
		b.home = nil
		if err != nil {
			return err
		}
	}
	return nil
}

// link is the name under which the archive has a file of several names already, or "".
func (h *home) link(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if h == nil || !ok || st.Nlink < 2 {
		return ""
	}
	return h.links[fileID{uint64(st.Dev), st.Ino}] //nolint:unconvert // Dev has another type elsewhere
}

// has notes under which name the archive has a file.
func (h *home) has(name string, info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); h != nil && ok && st.Nlink > 1 {
		h.links[fileID{uint64(st.Dev), st.Ino}] = name //nolint:unconvert // Dev has another type elsewhere
	}
}

// isHollow tells of a file with holes that are more than the home may have.
func (h *home) isHollow(file *os.File, info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if h == nil || !ok {
		return false
	}
	holes := info.Size() - 512*st.Blocks
	if holes <= 0 {
		return false
	}
	first, err := unix.Seek(int(file.Fd()), 0, unix.SEEK_HOLE)
	if err == nil && first >= info.Size() {
		return false // it is compressed
	}
	if holes > mostHoles-h.holes {
		return h.lacks("has files with holes of more than 1 GiB, which are left out")
	}
	h.holes += holes
	return false
}
