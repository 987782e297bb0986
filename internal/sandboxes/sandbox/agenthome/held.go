package agenthome

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// unlinked are files, directories and whatever else lies below homes that have no name any more and are held: no walk of a
// directory finds them, and they take their part of the disk until they are let go. They are found where the kernel has them, with
// the processes that live in mounts of their own, as all processes of sandboxes do: in the descriptors of each of their threads
// that has its own, as the directories in which each thread works, in what they have mapped, and as the program that they run.
//
// Unseen shows what holds something else. A kernel has more ways, of which nothing is seen: decision 115 has the table of those that we
// know, and the last bound for the others.
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
	nets    map[string]*network // namespaces of networks in which there are processes that show a home
	shown   map[string]bool     // sockets that are descriptors of processes, as links of /proc name them
	host    []string            // processes in the mounts of this one, in /proc
	waits   map[string]bool     // calls that wait, each as its thread has it
	waited  map[string]bool     // those at the look before
	heard   map[string]bool     // those of the sockets whose messages have been counted
	found   map[string]open
	spent   map[string]*effort // on homes
	most    effort             // for a home
	all     bool               // all processes can be looked at, as by root
	clock   func() time.Duration
	same    func(one, other int) bool
	stat    func(path string, flags int, st *unix.Statx_t) error
}

// open is what some files take.
type open struct {
	files  int
	bytes  int64
	unseen Unseen
	unread bool // it was not all looked at: there is more than is looked at of one home
}

// space is a namespace of mounts.
type space struct {
	home  string // that it shows, or that its processes hold something of; "": none
	spent effort // while there is none
}

// network is a namespace of a network, whose Unix sockets the kernel lists: also those that no process has as a descriptor.
type network struct {
	home  string
	dir   string          // in /proc, of a process in it
	there map[string]bool // its sockets before it was looked at what processes hold, as links of /proc name them
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

// spendWork does n descriptors' work of a look at a process. false: it was not done, since its home, or its namespace, has had
// what one may have, or ctx is over.
func (u *unlinked) spendWork(ctx context.Context, p process, n int, do func()) bool {
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

// addUnseen adds what is unseen of a home.
func (u *unlinked) addUnseen(home string, more Unseen) {
	k := u.found[home]
	k.unseen.Messages += more.Messages
	k.unseen.Mapped += more.Mapped
	k.unseen.Sockets += more.Sockets
	k.unseen.Calls += more.Calls
	u.found[home] = k
}

// countLink counts what a link of /proc leads to, once, if it is a home's and has no name any more. A directory keeps the room that
// its entries had, and the smaller kinds have a block each.
func (u *unlinked) countLink(link string, flags int) error {
	var st unix.Statx_t
	if err := u.stat(link, flags, &st); err != nil {
		return err
	}
	h, is := u.mounts[strconv.FormatUint(st.Mnt_id, 10)]
	if !is || st.Nlink > 0 {
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

// fdinfoField is what fdinfo says under a name, such as "mnt_id:".
func fdinfoField(info, name string) string {
	for line := range strings.Lines(info) {
		if said, is := strings.CutPrefix(line, name); is {
			return strings.TrimSpace(said)
		}
	}
	return ""
}

// addNamed adds what a link of /proc leads to of which there is no descriptor: the program that a process runs, which needs
// not be mapped, or a directory in which a thread works.
func (u *unlinked) addNamed(link string) {
	name, err := os.Readlink(link)
	if errors.Is(err, unix.ENAMETOOLONG) {
		_ = u.countLink(link, unix.AT_STATX_DONT_SYNC) // it can be so deep only below a directory that was moved there
		return
	}
	if err != nil || !strings.HasSuffix(name, deleted) {
		return
	}
	if slices.ContainsFunc(u.places, func(at string) bool { return strings.HasPrefix(name, at+"/") }) {
		_ = u.countLink(link, unix.AT_STATX_DONT_SYNC) // another file system may have this name, and is not asked
	}
}
