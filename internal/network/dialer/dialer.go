// Package dialer makes connections for a process that has no network: it resolves names,
// checks where they lead, connects, and hands over the connected socket.
//
// The boxed process is the one without a network (Apart starts it so). It shares a packet socket
// with the dialer, the process beside it that has one. A question on it is to resolve a name or to
// dial an address; the answer is addresses, a socket, or why not. An address that is not public is
// dialled only where the operator's configuration leads there: as an address of it (a pin), or as
// one that a name of it had (a granted address).
//
// The dialer reads nothing of what goes over a connection. The boxed process still says
// what names are asked about and which public addresses are dialled: it can be led to
// misuse the internet, and not to reach the host or its networks.
package dialer

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
)

const (
	maxPacket    = 16 << 10 // of a question or an answer
	maxAddresses = 64       // of one name
	maxQuestions = 4096     // under way
	longest      = time.Minute
)

// shares divide the questions under way between the sandboxes for which they are asked. Most is below
// maxQuestions, so that the dialer never has to turn one away.
func shares() fairqueue.Limits {
	return fairqueue.Limits{All: maxQuestions / 2, Each: 256, Sure: 16, Most: maxQuestions - 1}
}

// Resolver answers what addresses a name has. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// dialQuestion is one of the boxed process. One of Resolve and Dial is set.
type dialQuestion struct {
	ID      uint64 `json:"id"`
	Resolve string `json:"resolve,omitempty"`
	Dial    string `json:"dial,omitempty"` // IP:PORT, over TCP
	Millis  int64  `json:"millis"`         // how long it may take
}

// dialAnswer is to the question of its ID. A socket comes with it if it was to dial and
// nothing is wrong.
type dialAnswer struct {
	ID        uint64       `json:"id"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Error     string       `json:"error,omitempty"`
	Refused   bool         `json:"refused,omitempty"` // by the dialer itself
}

// Pair is the socket between the two, one end for each process.
func Pair() (one, other *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "dialer"), os.NewFile(uintptr(fds[1]), "boxed"), nil
}

// Apart is how a process starts in a network namespace of its own, in which nothing is
// configured. A user who is not root needs a user namespace for it, which has that user alone
// and gives no rights in any other.
func Apart(uid, gid int) *syscall.SysProcAttr {
	if uid == 0 {
		return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	}
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
	}
}

// Forbidden tells whether a process could not be started Apart because nobody may be, in
// this kernel or container. Of any other reason nothing follows but to try again: a table
// of processes that is full now does not take the box away.
func Forbidden(err error) bool { return forbidden(err, "/proc") }

func forbidden(err error, proc string) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return false
	}
	switch errno {
	case unix.EPERM, unix.EACCES, unix.ENOSYS:
		return true
	case unix.EINVAL: // of a kernel without such namespaces, and of much else
		_, err := os.Stat(filepath.Join(proc, "self/ns/net"))
		return errors.Is(err, fs.ErrNotExist)
	case unix.ENOSPC, unix.EUSERS: // of a limit of 0, and of one that is reached now
		return slices.ContainsFunc([]string{"max_net_namespaces", "max_user_namespaces"}, func(limit string) bool {
			text, err := os.ReadFile(filepath.Join(proc, "sys/user", limit))
			return err == nil && strings.TrimSpace(string(text)) == "0"
		})
	default:
		return false
	}
}
