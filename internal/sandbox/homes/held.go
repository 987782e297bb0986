package homes

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

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
//
// Processes of other namespaces may hold such files as well: a kernel that is the sandbox's own
// lives in one that shows nothing. They are looked at as far as firstDescriptors, by which that one is known; what another sandbox was handed over a socket
// and holds behind these is not found.
type unlinked struct {
	homes   hostpath.Spot     // the directory of all homes, in its file system
	taken   map[string]bool   // the homes, as "uid/name", that sandboxes have now
	device  string            // of it, as maps write it
	mounts  map[string]string // the home, as "uid/name", of which a mount shows a part, by the mount's number
	places  []string          // where those are mounted
	spaces  map[string]*space // namespaces of mounts that have been read
	counted map[[3]uint64]bool
	heard   map[string]bool // sockets whose messages have been counted, as links of /proc name them
	found   map[string]open
	spent   map[string]*effort // on homes
	most    effort             // for a home
	clock   func() time.Duration
	stat    func(path string, flags int, st *unix.Statx_t) error
}

// open is what some files take.
type open struct {
	files  int
	bytes  int64
	unseen int  // descriptors and files of which it is not known what they take
	unread bool // it was not all looked at: there is more than is looked at of one home
}

// space is a namespace of mounts.
type space struct {
	home  string // that it shows, or that its processes hold something of; "": none
	spent effort // while there is none
}

// process is one with mounts of its own.
type process struct {
	dir   string // in /proc, of a thread that lives: the first one may have ended by itself
	tasks string // of all threads
	space *space
}

// MostDescriptors and the others bound what is looked at. A sandbox may have any number of processes with any number of descriptors each, and the homes of
// all others wait for the look at its.
const (
	MostDescriptors  = 100_000                // of a home, together with the KiB of its processes' maps
	mostTime         = 3 * time.Second        // of a processor, for a home: a descriptor with many locks takes long
	firstDescriptors = 512                    // of a namespace that shows no home
	firstTime        = 100 * time.Millisecond // for one
	readAtOnce       = 1024                   // names of a directory
	headOfInfo       = 512                    // bytes of fdinfo, with all that is the same for each kind of file
	mostOfLine       = 1 << 20                // bytes of a line of maps, which has a path of any length
)

// effort is what looking takes.
type effort struct {
	descriptors int
	time        time.Duration // of a processor
}

// threadTime is the processor's time that this thread has taken, also for the kernel. The machine's load is not in it.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0 // the count bounds it
	}
	return time.Duration(t.Nano())
}

// spend does n descriptors' work of a look at a process. false: it was not done, since its home, or its namespace, has had
// what one may have, or ctx is over.
func (u *unlinked) spend(ctx context.Context, p process, n int, do func()) bool {
	if ctx.Err() != nil {
		return false
	}
	home := p.space.home
	spent, most := &p.space.spent, effort{firstDescriptors, firstTime}
	if home != "" {
		if u.spent[home] == nil {
			u.spent[home] = &effort{}
		}
		spent, most = u.spent[home], u.most
	}
	if spent.descriptors+n > most.descriptors || spent.time > most.time {
		u.giveUp(home)
		return false
	}
	begin := u.clock()
	do()
	spent.descriptors += n
	spent.time += u.clock() - begin
	return true
}

// giveUp notes that not all is looked at that may be a home's.
func (u *unlinked) giveUp(home string) {
	if home != "" {
		k := u.found[home]
		k.unread = true
		u.found[home] = k
	}
}

// mostTables is with how many tables of descriptors a thread's is compared. Later ones count as its own: a process may have a table for each
// of its threads, and comparing all with all would be work that nobody bounds.
const mostTables = 8

// look adds what one process holds.
func (u *unlinked) look(ctx context.Context, p process) {
	var tables []int // threads, each with descriptors that are not the others'
	eachName(p.tasks, func(name string) bool {
		thread, err := strconv.Atoi(name)
		shares := false
		compare := func() {
			shares = slices.ContainsFunc(tables, func(other int) bool { return sameDescriptors(other, thread) })
		}
		if err != nil || !u.spend(ctx, p, 0, compare) || shares {
			return shares
		}
		if len(tables) < mostTables {
			tables = append(tables, thread)
		}
		dir, more := filepath.Join(p.tasks, name), true
		eachName(filepath.Join(dir, "fd"), func(descriptor string) bool {
			more = u.spend(ctx, p, 1, func() { u.add(p, dir, descriptor) })
			return more
		})
		return more
	})
	if p.space.home != "" {
		u.addMapped(ctx, p)
		u.spend(ctx, p, 1, func() { u.addProgram(p) })
	}
}

// eachName goes through a directory of /proc, as far as it can be read, until do says that it is enough.
func eachName(path string, do func(name string) (more bool)) {
	dir, err := os.Open(path)
	if err != nil {
		return // it has ended, or is another user's
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(readAtOnce)
		for _, name := range names {
			if !do(name) {
				return
			}
		}
		if err != nil {
			return // io.EOF, or it has ended
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
// have others mounted, and one that does not answer would keep every home from being looked at. Of most descriptors their
// name says enough, which takes a fraction of what fdinfo does: of an epoll the kernel writes all targets there.
func (u *unlinked) add(p process, thread, descriptor string) {
	link := filepath.Join(thread, "fd", descriptor)
	name, err := os.Readlink(link)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // it has ended, or was closed
	case strings.HasPrefix(name, "socket:"):
		u.addMessages(p, name, thread, descriptor)
	case err == nil && (!strings.HasPrefix(name, "/") || p.space.home != "" && !strings.HasSuffix(name, deleted)):
		// It is no file, or has a name.
	default: // also if the name is too long
		home, is := u.mounts[field(readInfo(thread, descriptor), "mnt_id:")]
		if is && p.space.home == "" {
			p.space.home = home
		}
		if is {
			_ = u.count(link, 0) // it has ended, or was closed
		}
	}
}

// addMessages adds how many descriptors are in messages that wait at a socket, once for whoever has it.
func (u *unlinked) addMessages(p process, socket, thread, descriptor string) {
	if p.space.home == "" || u.heard[socket] {
		return
	}
	u.heard[socket] = true
	if n, _ := strconv.Atoi(field(readInfo(thread, descriptor), "scm_fds:")); n > 0 {
		k := u.found[p.space.home]
		k.unseen += n
		u.found[p.space.home] = k
	}
}

// readInfo is the head of a descriptor's fdinfo, and all of it where locks come before what is asked for.
func readInfo(thread, descriptor string) string {
	file, err := os.Open(filepath.Join(thread, "fdinfo", descriptor))
	if err != nil {
		return ""
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, headOfInfo))
	if err != nil || len(head) < headOfInfo || !strings.Contains(string(head), "\nlock:") {
		return string(head)
	}
	rest := bufio.NewReaderSize(file, headOfInfo)
	for {
		line, err := rest.ReadString('\n')
		if strings.HasPrefix(line, "scm_fds:") {
			return string(head) + "\n" + line
		}
		if err != nil {
			return string(head)
		}
	}
}

// addMapped adds what a process has mapped.
func (u *unlinked) addMapped(ctx context.Context, p process) {
	file, err := os.Open(filepath.Join(p.dir, "maps"))
	if err != nil {
		return
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 4096), mostOfLine)
	seen := map[string]bool{}
	bytes, more := 0, true
	for more && lines.Scan() {
		line := lines.Text()
		if bytes += len(line) + 1; bytes >= 1024 {
			more = u.spend(ctx, p, bytes/1024, func() {})
			bytes %= 1024
		}
		fields := strings.Fields(line)
		if !strings.HasSuffix(line, deleted) || len(fields) < 6 || fields[3] != u.device || seen[fields[4]] {
			continue
		}
		seen[fields[4]] = true
		more = more && u.spend(ctx, p, 1, func() { u.addMapping(p, fields[0]) })
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		u.giveUp(p.space.home)
	}
}

// addMapping adds a file that has no name, as a process has it mapped at a range of its memory.
func (u *unlinked) addMapping(p process, at string) {
	from, to, _ := strings.Cut(at, "-")
	name := strings.TrimLeft(from, "0") + "-" + strings.TrimLeft(to, "0")
	if err := u.count(filepath.Join(p.dir, "map_files", name), 0); errors.Is(err, fs.ErrPermission) {
		k := u.found[p.space.home]
		k.unseen++
		u.found[p.space.home] = k
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

// deleted is behind the name of what has none any more.
const deleted = " (deleted)"

// addProgram adds the program that a process runs, which needs not be mapped.
func (u *unlinked) addProgram(p process) {
	link := filepath.Join(p.dir, "exe")
	name, err := os.Readlink(link)
	if errors.Is(err, unix.ENAMETOOLONG) {
		_ = u.count(link, unix.AT_STATX_DONT_SYNC) // only by calling it from a directory is one run whose name is so long
		return
	}
	if err != nil || !strings.HasSuffix(name, deleted) {
		return
	}
	if slices.ContainsFunc(u.places, func(at string) bool { return strings.HasPrefix(name, at+"/") }) {
		_ = u.count(link, unix.AT_STATX_DONT_SYNC) // another file system may have this name, and is not asked
	}
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
