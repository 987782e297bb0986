package homes

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/hostpath"
)

// unlinked are files below homes that have no name any more and are open: no walk of a directory finds them, and they
// take their part of the disk until they are closed. They are found where the kernel has them, in the descriptors of the
// processes that live in mounts of their own, as all processes of sandboxes do.
//
// Not found: what a process keeps, under an engine whose kernel is the host's, without a descriptor of its own, in a message that nobody has
// received or in a ring of io_uring; and, without root, what this user may not look at.
type unlinked struct {
	homes   hostpath.Spot       // the directory of all homes, in its file system
	mounts  map[string]string   // the home, as "uid/name", of which a mount shows a part, by the mount's number
	spaces  map[string]struct{} // namespaces of mounts that have been read
	counted map[[2]uint64]bool  // device and inode: a file has many descriptors
	found   map[string]open
	stat    func(path string, st *unix.Stat_t) error
}

// readAtOnce is how many names of a directory are read at a time: a sandbox may have any number of files open.
const readAtOnce = 1024

// open is what some files take.
type open struct {
	files int
	bytes int64
}

// readUnlinked adds up what they take, by home: "uid/name", as it lies in the directory of all homes.
func readUnlinked(dir string) (map[string]open, error) {
	opened, err := hostpath.Follow(dir) // the installation's own
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no homes
	}
	if err != nil {
		return nil, err
	}
	opened.Close()
	table, err := hostpath.ReadTable()
	if err != nil {
		return nil, err
	}
	spot, _ := table.SpotOf(opened.Name)
	u := unlinked{spot, map[string]string{}, map[string]struct{}{}, map[[2]uint64]bool{}, map[string]open{}, unix.Stat}
	processes, err := u.processes()
	if err != nil {
		return nil, err
	}
	if len(u.mounts) > 0 {
		for _, process := range processes {
			u.look(process)
		}
	}
	return u.found, nil
}

// processes are those with mounts of their own, whose mounts it reads.
func (u *unlinked) processes() (all []string, err error) {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		process := filepath.Join("/proc", entry.Name())
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		space, err := os.Readlink(filepath.Join(process, "ns", "mnt"))
		if err != nil || space == own { // it has ended, or is another user's
			continue
		}
		all = append(all, process)
		if _, known := u.spaces[space]; known {
			continue
		}
		if text, err := os.ReadFile(filepath.Join(process, "mountinfo")); err == nil {
			u.spaces[space] = struct{}{}
			u.read(hostpath.ParseTable(string(text)))
		}
	}
	return all, nil
}

// read notes which mounts show a part of a home.
func (u *unlinked) read(table hostpath.Table) {
	for _, m := range table {
		below, is := strings.CutPrefix(m.Shows.Path, strings.TrimSuffix(u.homes.Path, "/")+"/")
		parts := strings.SplitN(below, "/", 3)
		if !is || m.Shows.Device != u.homes.Device || len(parts) < 3 {
			continue
		}
		u.mounts[m.ID] = filepath.Join(parts[0], parts[1])
	}
}

// look adds what one process has open.
func (u *unlinked) look(process string) {
	dir, err := os.Open(filepath.Join(process, "fd"))
	if err != nil {
		return // it has ended, or is another user's
	}
	defer dir.Close()
	for n := 0; n <= maxEntries; {
		names, err := dir.Readdirnames(readAtOnce)
		for _, name := range names {
			u.add(process, name)
		}
		n += len(names)
		if errors.Is(err, io.EOF) || err != nil {
			return
		}
	}
}

// add adds what a descriptor is of. It opens nothing of it, and asks only the file system of the homes: any user of the host may
// have others mounted, and one that does not answer would keep every home from being looked at.
func (u *unlinked) add(process, descriptor string) {
	info, err := os.ReadFile(filepath.Join(process, "fdinfo", descriptor))
	if err != nil {
		return
	}
	h, is := u.mounts[mountOf(string(info))]
	if !is {
		return
	}
	var st unix.Stat_t
	if err := u.stat(filepath.Join(process, "fd", descriptor), &st); err != nil || st.Nlink > 0 || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return
	}
	file := [2]uint64{st.Dev, st.Ino}
	if u.counted[file] {
		return
	}
	u.counted[file] = true
	k := u.found[h]
	u.found[h] = open{k.files + 1, k.bytes + st.Blocks*block}
}

// mountOf is the number of the mount through which a descriptor was opened, as fdinfo says.
func mountOf(info string) string {
	for line := range strings.Lines(info) {
		if mount, is := strings.CutPrefix(line, "mnt_id:"); is {
			return strings.TrimSpace(mount)
		}
	}
	return ""
}
