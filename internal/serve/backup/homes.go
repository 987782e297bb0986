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

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
)

// mostHoles is how many bytes of holes in the files of one home are written as zeros. A file of
// any size costs who makes it nothing, and would fill the disk of whoever copies it.
const mostHoles = 1 << 30

// home is the one that is being copied. Its content is an agent's, and no agent may decide
// whether there is a backup: what can't be copied is left out, and the report says so.
type home struct {
	name  string            // of its directory
	why   []string          // it is not whole, in words
	holes int64             // bytes of its files that are no data
	most  int64             // bytes of its files that are copied yet
	links map[fileID]string // the first name of each file that has several
}

type fileID struct{ dev, ino uint64 }

// noteLack notes that a home is not whole. A nil home is the installation's own part, which must be.
func (h *home) noteLack(why string) bool {
	if h != nil && !slices.Contains(h.why, why) {
		h.why = append(h.why, why)
	}
	return h != nil
}

// copyHomes copies each home by itself.
func (b *writer) copyHomes(ctx context.Context) error {
	if slices.Contains(b.out, Homes) {
		return nil
	}
	if to, err := b.target(Homes); err != nil || to != "" {
		return errors.Join(err, b.elsewhere(Homes, to))
	}
	var found []string
	err := treewalk.Walk(ctx, b.state, Homes, bounds(), func(name string, d fs.DirEntry, err error) error {
		switch {
		case isGone(err):
			return nil
		case err != nil:
			return b.unread(name, err)
		case strings.Count(name, "/") == 2 && d.IsDir(): // homes/UID/NAME
			found = append(found, name)
			return fs.SkipDir
		}
		return b.copyEntry(ctx, name, d)
	})
	if err := b.walked(Homes, err); err != nil {
		return err
	}
	for _, name := range found {
		b.home = &home{name: name, links: map[fileID]string{}, most: mostData(b.state.Name)}
		err := b.copyFiles(ctx, name)
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

// mostCompressed is how many times a file system makes files smaller; where more is missing there are holes,
// also on one that does not tell of them.
const mostCompressed = 32

// mostData is how many bytes the files of one home may have: a few times what is in use on its file system. An agent that
// gives one file many names, one after the other, has it copied for each.
func mostData(dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 1 << 40
	}
	return 1<<30 + 4*int64(st.Blocks-st.Bfree)*st.Bsize
}

// chargeBytes counts a file's bytes, and tells whether they are more than is still copied of the home.
func (h *home) chargeBytes(size int64) bool {
	if h == nil {
		return false
	}
	if h.most -= size; h.most >= 0 {
		return false
	}
	return h.noteLack("has more data than its file system, as files changed their names meanwhile; the rest is left out")
}

// linkedName is the name under which the archive has a file of several names already, or "".
func (h *home) linkedName(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if h == nil || !ok || st.Nlink < 2 {
		return ""
	}
	return h.links[fileID{uint64(st.Dev), st.Ino}] //nolint:unconvert // Dev has another type elsewhere
}

// noteName notes under which name the archive has a file.
func (h *home) noteName(name string, info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); h != nil && ok && st.Nlink > 1 {
		h.links[fileID{uint64(st.Dev), st.Ino}] = name //nolint:unconvert // Dev has another type elsewhere
	}
}

// chargeHoles counts a file's holes, and tells whether they are more than the home may have.
func (h *home) chargeHoles(file *os.File, info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if h == nil || !ok {
		return false
	}
	holes := info.Size() - 512*st.Blocks
	if holes <= 0 {
		return false
	}
	first, err := unix.Seek(int(file.Fd()), 0, unix.SEEK_HOLE)
	if err == nil && first >= info.Size() && 512*st.Blocks >= info.Size()/mostCompressed {
		return false // it is compressed
	}
	if holes > mostHoles-h.holes {
		return h.noteLack("has files with holes of more than 1 GiB, which are left out")
	}
	h.holes += holes
	return false
}
