package agenthome

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// socketPrefix begins the name of a socket in /proc, behind which its number is.
const socketPrefix = "socket:"

// addDescriptor adds what a descriptor is of. It opens nothing of it, and asks only the file system of the homes: any user of the host may
// have others mounted, and one that does not answer would keep every home from being looked at. Of most descriptors their
// name says enough, which takes a fraction of what fdinfo does: of an epoll the kernel writes all targets there.
func (u *unlinked) addDescriptor(p process, thread, descriptor string) {
	link := filepath.Join(thread, "fd", descriptor)
	name, err := os.Readlink(link)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // it has ended, or was closed
	case strings.HasPrefix(name, socketPrefix):
		u.shown[name] = true
		u.addMessages(p, name, thread, descriptor)
	case err == nil && (!strings.HasPrefix(name, "/") || p.space.home != "" && !strings.HasSuffix(name, deleted)):
		// It is no file, or has a name.
	default: // also if the name is too long
		home, is := u.mounts[fdinfoField(readInfo(thread, descriptor), "mnt_id:")]
		if is && p.space.home == "" {
			p.space.home = home
		}
		if is {
			_ = u.countLink(link, 0) // it has ended, or was closed
		}
	}
}

// readInfo reads the head of a descriptor's fdinfo, and all of it where locks come before what is asked for.
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

// addMessages adds how many descriptors are in messages that wait at a socket, once for whoever has it.
func (u *unlinked) addMessages(p process, socket, thread, descriptor string) {
	if p.space.home == "" || u.heard[socket] {
		return
	}
	u.heard[socket] = true
	if n, _ := strconv.Atoi(fdinfoField(readInfo(thread, descriptor), "scm_fds:")); n > 0 {
		u.addUnseen(p.space.home, Unseen{Messages: n})
	}
}

// sameDescriptors tells whether two threads share theirs, as those of most processes do. false: they don't, or nobody knows.
func sameDescriptors(one, other int) bool {
	const files = 2 // KCMP_FILES
	r, _, failed := unix.Syscall6(unix.SYS_KCMP, uintptr(one), uintptr(other), files, 0, 0, 0)
	return failed == 0 && r == 0
}
