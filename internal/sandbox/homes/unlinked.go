package homes

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/hostpath"
)

// unlinked are files below homes that have no name any more and are held: no walk of a directory finds them, and they
// take their part of the disk until they are let go. They are found where the kernel has them, with the processes that live in
// mounts of their own, as all processes of sandboxes do: in the descriptors of each of their threads that has its own, in what
// they have mapped, and as the program that they run.
//
// In a message that nobody has received the kernel shows no file, only how many descriptors there are. These are unseen:
// whoever looks knows that something is held, and not how much. So is a mapped file without root, which the engines have
// whose kernel is the host's. Messages are all found: one that no process can still receive, over whatever chain of
// sockets, the kernel throws away. Rings of io_uring and mounts could hold files too; sandboxes may make neither.
type unlinked struct {
	homes   hostpath.Spot     // the directory of all homes, in its file system
	device  string            // of it, as maps write it
	mounts  map[string]string // the home, as "uid/name", of which a mount shows a part, by the mount's number
	places  []string          // where those are mounted
	spaces  map[string]string // namespaces of mounts that have been read, with the home that they show; "": none
	counted map[[3]uint64]bool
	found   map[string]open
	stat    func(path string, flags int, st *unix.Statx_t) error
}

// readAtOnce is how many names of a directory are read at a time: a sandbox may have any number of files open.
const readAtOnce = 1024

// open is what some files take.
type open struct {
	files  int
	bytes  int64
	unseen int // descriptors and files of which it is not known what they take
}

// process is one with mounts of its own.
type process struct {
	dir  string // in /proc
	home string // that its mounts show; "": none
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
	u := newUnlinked(spot)
	processes, err := u.processes()
	if err != nil {
		return nil, err
	}
	if len(u.mounts) > 0 {
		for _, p := range processes {
			u.look(p)
		}
	}
	return u.found, nil
}

func newUnlinked(homes hostpath.Spot) *unlinked {
	return &unlinked{
		homes: homes, device: inMaps(homes.Device), mounts: map[string]string{}, spaces: map[string]string{},
		counted: map[[3]uint64]bool{}, found: map[string]open{}, stat: statOf,
	}
}

// inMaps is a device as maps write it: "8:1" is "08:01".
func inMaps(device string) string {
	major, minor, _ := strings.Cut(device, ":")
	write := func(decimal string) string {
		n, err := strconv.ParseUint(decimal, 10, 32)
		if err != nil {
			return decimal
		}
		hex := strconv.FormatUint(n, 16)
		return strings.Repeat("0", max(0, 2-len(hex))) + hex
	}
	return write(major) + ":" + write(minor)
}

// statOf is what a link of /proc leads to, with the mount through which it is held.
func statOf(path string, flags int, st *unix.Statx_t) error {
	return unix.Statx(unix.AT_FDCWD, path, flags, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, st)
}

// processes are those with mounts of their own, whose mounts it reads.
func (u *unlinked) processes() (all []process, err error) {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		dir := filepath.Join("/proc", entry.Name())
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		space, err := os.Readlink(filepath.Join(dir, "ns", "mnt"))
		if err != nil || space == own { // it has ended, or is another user's
			continue
		}
		if _, known := u.spaces[space]; !known {
			if text, err := os.ReadFile(filepath.Join(dir, "mountinfo")); err == nil {
				u.spaces[space] = u.read(hostpath.ParseTable(string(text)))
			}
		}
		all = append(all, process{dir, u.spaces[space]})
	}
	return all, nil
}

// read notes which mounts show a part of a home, and gives the home.
func (u *unlinked) read(table hostpath.Table) (home string) {
	for _, m := range table {
		below, is := strings.CutPrefix(m.Shows.Path, strings.TrimSuffix(u.homes.Path, "/")+"/")
		parts := strings.SplitN(below, "/", 3)
		if !is || m.Shows.Device != u.homes.Device || len(parts) < 3 {
			continue
		}
		home = filepath.Join(parts[0], parts[1])
		u.mounts[m.ID] = home
		if !slices.Contains(u.places, m.At) {
			u.places = append(u.places, m.At)
		}
	}
	return home
}

// look adds what one process holds.
func (u *unlinked) look(p process) {
	tasks := filepath.Join(p.dir, "task")
	threads, own := 0, 0
	eachName(tasks, func(thread string) {
		threads++
		if threads == 1 {
			own, _ = strconv.Atoi(thread)
		} else if other, _ := strconv.Atoi(thread); sameDescriptors(own, other) {
			return
		}
		dir := filepath.Join(tasks, thread)
		eachName(filepath.Join(dir, "fd"), func(descriptor string) { u.add(p, dir, descriptor) })
	})
	if p.home != "" {
		u.addMapped(p)
		u.addProgram(p)
	}
}

// eachName goes through a directory of /proc, as far as it can be read.
func eachName(path string, do func(name string)) {
	dir, err := os.Open(path)
	if err != nil {
		return // it has ended, or is another user's
	}
	defer dir.Close()
	for n := 0; n <= maxEntries; {
		names, err := dir.Readdirnames(readAtOnce)
		for _, name := range names {
			do(name)
		}
		n += len(names)
		if errors.Is(err, io.EOF) || err != nil {
			return
		}
	}
}

// sameDescriptors tells whether two threads share theirs, as those of most processes do. false: they don't, or nobody knows.
func sameDescriptors(one, other int) bool {
	const files = 2 // KCMP_FILES
	r, _, failed := unix.Syscall6(unix.SYS_KCMP, uintptr(one), uintptr(other), files, 0, 0, 0)
	return failed == 0 && r == 0
}

// add adds what a descriptor is of. It opens nothing of it, and asks only the file system of the homes: any user of the host may
// have others mounted, and one that does not answer would keep every home from being looked at.
func (u *unlinked) add(p process, thread, descriptor string) {
	info, err := os.ReadFile(filepath.Join(thread, "fdinfo", descriptor))
	if err != nil {
		return
	}
	if n, _ := strconv.Atoi(field(string(info), "scm_fds:")); n > 0 && p.home != "" {
		k := u.found[p.home]
		k.unseen += n
		u.found[p.home] = k
	}
	if _, is := u.mounts[field(string(info), "mnt_id:")]; is {
		_ = u.count(filepath.Join(thread, "fd", descriptor), 0) // it has ended, or was closed
	}
}

// addMapped adds what a process has mapped.
func (u *unlinked) addMapped(p process) {
	text, err := os.ReadFile(filepath.Join(p.dir, "maps"))
	if err != nil {
		return
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, deleted+"\n") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[3] != u.device || seen[fields[4]] {
			continue
		}
		seen[fields[4]] = true
		from, to, _ := strings.Cut(fields[0], "-")
		name := strings.TrimLeft(from, "0") + "-" + strings.TrimLeft(to, "0")
		if err := u.count(filepath.Join(p.dir, "map_files", name), 0); errors.Is(err, fs.ErrPermission) {
			k := u.found[p.home]
			k.unseen++
			u.found[p.home] = k
		}
	}
}

// deleted is behind the name of what has none any more.
const deleted = " (deleted)"

// addProgram adds the program that a process runs, which needs not be mapped.
func (u *unlinked) addProgram(p process) {
	link := filepath.Join(p.dir, "exe")
	name, err := os.Readlink(link)
	if err != nil || !strings.HasSuffix(name, deleted) {
		return
	}
	if slices.ContainsFunc(u.places, func(at string) bool { return strings.HasPrefix(name, at+"/") }) {
		_ = u.count(link, unix.AT_STATX_DONT_SYNC) // another file system may have this name, and is not asked
	}
}

// count counts a file that a link of /proc leads to, once, if it is a home's and has no name any more.
func (u *unlinked) count(link string, flags int) error {
	var st unix.Statx_t
	if err := u.stat(link, flags, &st); err != nil {
		return err
	}
	h, is := u.mounts[strconv.FormatUint(st.Mnt_id, 10)]
	if !is || st.Nlink > 0 || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil
	}
	file := [3]uint64{uint64(st.Dev_major), uint64(st.Dev_minor), st.Ino}
	if u.counted[file] {
		return nil
	}
	u.counted[file] = true
	k := u.found[h]
	k.files, k.bytes = k.files+1, k.bytes+int64(st.Blocks)*block
	u.found[h] = k
	return nil
}

// field is what fdinfo says under a name, such as "mnt_id:".
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if said, is := strings.CutPrefix(line, name); is {
			return strings.TrimSpace(said)
		}
	}
	return ""
}
