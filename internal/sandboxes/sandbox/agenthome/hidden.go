package agenthome

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// noteNet notes the network of a process that shows a home. Not this process's own one: whoever is in that has sockets that are no
// sandbox's. Without root there are processes at which nobody may look, and nobody knows which sockets these have.
func (u *unlinked) noteNet(p process) {
	if !u.all || p.space.home == "" {
		return
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return
	}
	if in, err := os.Readlink(filepath.Join(p.dir, "ns", "net")); err == nil && in != own && u.nets[in] == nil {
		u.nets[in] = &network{home: p.space.home, dir: p.dir}
	}
}

// sockets are those of a network.
func (u *unlinked) sockets(ctx context.Context, of *network) map[string]bool {
	file, err := os.Open(filepath.Join(of.dir, "net", "unix"))
	if err != nil {
		return nil // its process has ended
	}
	defer file.Close()
	all := map[string]bool{}
	lines, bytes, more := bufio.NewScanner(file), 0, true
	for more && lines.Scan() {
		if bytes += len(lines.Text()) + 1; bytes >= 1024 {
			more = u.spendWork(ctx, process{space: &space{home: of.home}}, bytes/1024, func() {})
			bytes %= 1024
		}
		const number = 6 // 0 is that of one that a process has not accepted yet, whose messages are counted with the one that listens
		if fields := strings.Fields(lines.Text()); len(fields) > number && fields[number] != "0" && fields[number] != "Inode" {
			all[socketPrefix+"["+fields[number]+"]"] = true
		}
	}
	return all
}

// addSockets adds the sockets that were there all the time in which it was looked at descriptors, and of which there is none.
func (u *unlinked) addSockets(ctx context.Context, processes []process) {
	alone := map[string]string{} // with the home
	for _, n := range u.nets {
		for socket := range u.sockets(ctx, n) {
			if n.there[socket] && !u.shown[socket] {
				alone[socket] = n.home
			}
		}
	}
	u.leaveOut(ctx, alone, processes)
	for _, home := range alone {
		u.addUnseen(home, Unseen{Sockets: 1})
	}
}

// leaveOut takes those from sockets that a process without a home has as a descriptor: a connection that it has accepted is in the network of the
// sandbox that made it. The host's come first, and it ends where a home's bound of descriptors does.
func (u *unlinked) leaveOut(ctx context.Context, sockets map[string]string, processes []process) {
	left, begin := u.most.descriptors, u.clock()
	from := func(dir string) {
		if len(sockets) == 0 {
			return
		}
		eachName(filepath.Join(dir, "fd"), func(descriptor string) bool {
			if name, err := os.Readlink(filepath.Join(dir, "fd", descriptor)); err == nil {
				delete(sockets, name)
			}
			left--
			return left > 0 && len(sockets) > 0 && u.clock()-begin < u.most.time && ctx.Err() == nil
		})
	}
	for _, dir := range u.host {
		from(dir)
	}
	for _, p := range processes {
		if p.space.home == "" {
			from(p.dir)
		}
	}
}

// addThread adds what a thread of a process that shows a home holds without a descriptor. Directories are each thread's own,
// unless it shares them.
func (u *unlinked) addThread(p process, thread string) {
	if p.space.home == "" {
		return
	}
	u.addNamed(filepath.Join(thread, "cwd"))
	u.addNamed(filepath.Join(thread, "root"))
	u.addCall(p, thread)
}

// addCall adds a call that waits and may keep a file that was closed meanwhile. Programs copy, lock and unmap all the time, and such a call
// gives nothing back: whatever it keeps it keeps until it ends, so it counts once it is the same that it was at the look before. From one that sends or runs a file
// that can be had again, for another call, and it counts at once.
func (u *unlinked) addCall(p process, thread string) {
	text, err := os.ReadFile(filepath.Join(thread, "syscall"))
	said := strings.Fields(string(text))
	if err != nil || len(said) < 2 { // "running"
		return
	}
	call, err := strconv.Atoi(said[0])
	if err != nil {
		return
	}
	gives := givesFile(call, said[1])
	if !gives && !keepsFile(call) {
		return
	}
	at := thread + " " + string(text)
	u.waits[at] = true
	if gives || u.waited[at] {
		u.addUnseen(p.space.home, Unseen{Calls: 1})
	}
}

// keepsFile tells whether a system call may wait for as long as a sandbox likes with a file or directory of a home that
// another thread has closed: for a reader, a lock, or the end of threads.
func keepsFile(call int) bool {
	// Programs for 32 bits have other numbers for them, and nothing tells which ones a thread's is. No other call that has one of these waits long.
	of32 := []int{
		11, 55, 143, 187, 221, 239, // execve, fcntl, flock, sendfile, fcntl64 and sendfile64
		313, 358, 377, // splice, execveat and copy_file_range on x86
		340, 387, 391, // on ARM
	}
	return slices.Contains(append(of32, unix.SYS_SENDFILE, unix.SYS_SPLICE, unix.SYS_COPY_FILE_RANGE, unix.SYS_FLOCK, unix.SYS_FCNTL), call)
}

// givesFile tells whether a call may wait so with files that can be had again when it ends, by its first argument: they arrive, or are the
// program that runs.
func givesFile(call int, first string) bool {
	const socketcall, sendmsg, sendmmsg = 102, 16, 20 // of 32 bits on x86; the kernel takes 32 bits of which one it is
	which, err := strconv.ParseUint(strings.TrimPrefix(first, "0x"), 16, 64)
	if call == socketcall && runtime.GOARCH == "amd64" {
		return err == nil && (uint32(which) == sendmsg || uint32(which) == sendmmsg)
	}
	of32 := map[string][]int{"amd64": {345, 370}, "arm64": {296, 374}}[runtime.GOARCH] // sendmmsg and sendmsg, which no others have there
	return slices.Contains(append(of32, unix.SYS_SENDMSG, unix.SYS_SENDMMSG, unix.SYS_EXECVE, unix.SYS_EXECVEAT), call)
}
