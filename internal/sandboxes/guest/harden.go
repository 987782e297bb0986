package guest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The descriptors of the channel when PID 1 starts.
const (
	stdin  = 0
	stdout = 1
)

// agentCapabilities are all that the agent keeps, as far as the engine gave
// them: to change users, to own files, to signal and see commands, to listen
// on low ports, and after a restore to set limits, the host name and the time anew.
func agentCapabilities() []int {
	return []int{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_KILL,
		unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE,
		unix.CAP_SYS_PTRACE, unix.CAP_SYS_RESOURCE, unix.CAP_SYS_ADMIN, unix.CAP_SYS_TIME,
	}
}

// TakeChannel takes the channel away from stdin and stdout, puts nothing in
// their place, and makes sure that no other descriptor reaches a command. The channel is
// one socket that is both, one on which the host connects, a machine's port that is both, or
// a pipe for each direction.
func TakeChannel() (io.ReadWriteCloser, error) {
	conn, err := takePort(stdin) // before what makes stdin non-blocking
	if errors.Is(err, errNoPort) {
		conn, err = takeListener()
	}
	if errors.Is(err, errNoListener) {
		conn, err = takeSocket()
	}
	if errors.Is(err, unix.ENOTSOCK) {
		conn, err = takePipes()
	}
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	defer null.Close()
	err = errors.Join(
		unix.Dup3(int(null.Fd()), stdin, 0),
		unix.Dup3(int(null.Fd()), stdout, 0),
		unix.CloseRange(3, ^uint(0)>>33, unix.CLOSE_RANGE_CLOEXEC),
	)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// takeSocket takes the channel if stdin is a socket, else unix.ENOTSOCK.
func takeSocket() (io.ReadWriteCloser, error) {
	fd, err := unix.FcntlInt(stdin, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("take the channel from stdin: %w", err)
	}
	file := os.NewFile(uintptr(fd), "channel")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("stdin is not a socket: %w", err)
	}
	// A kernel in user space may hold stdin and stdout as two sockets over one
	// wire, and shut the wire when either is closed. So stdout's stays open,
	// out of the way, for as long as the agent lives.
	if _, err := unix.FcntlInt(stdout, unix.F_DUPFD_CLOEXEC, 3); err != nil {
		return nil, errors.Join(fmt.Errorf("keep the channel of stdout: %w", err), conn.Close())
	}
	return conn, nil
}

// Harden makes PID 1 what every command is to inherit: no way to gain
// privileges, an empty bounding set (so that even root's programs have no
// capabilities), umask 022. It keeps of its own capabilities only what it
// needs, and can't be traced or ended by a signal from inside.
func Harden() error {
	if err := bringUpLoopback(); err != nil {
		return fmt.Errorf("bring up the loopback interface: %w", err)
	}
	_ = nameLoopback() // without CAP_NET_ADMIN a few programs find no names
	unix.Umask(0o022)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid tracing: %w", err)
	}
	// Set before the first thread, all have it, and it can't be taken back.
	if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || set == 0 {
		if err := everyThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
			return fmt.Errorf("forbid new privileges: %w", err)
		}
	}
	for c := range unix.CAP_LAST_CAP + 1 {
		bound, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0)
		if err != nil || bound == 0 {
			continue // unknown to this kernel, or not there
		}
		if err := everyThread(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, uintptr(c)); err != nil {
			return fmt.Errorf("empty the bounding set (the agent needs CAP_SETPCAP for it): %w", err)
		}
	}
	if err := keepCapabilities(); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	ignoreSignals()
	return nil
}

// keepCapabilities drops what the agent does not need, and what could be
// inherited.
func keepCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now, want [2]unix.CapUserData
	if err := unix.Capget(&header, &now[0]); err != nil {
		return err
	}
	for _, c := range agentCapabilities() {
		bit := now[c/32].Permitted & (1 << (c % 32))
		want[c/32].Permitted |= bit
		want[c/32].Effective |= bit
	}
	err := everyThread(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&want[0]))) //nolint:gosec // the call takes two pointers
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&want)
	return err
}

// everyThread does a system call on all threads, since these attributes belong
// to a thread and a child has those of the one that forked it.
func everyThread(call uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := syscall.AllThreadsSyscall6(call, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return errno
	}
	return nil
}

// ignoreSignals takes the signals that would end the agent and does nothing
// with them. They are handled, not ignored: ignoring is inherited by commands.
func ignoreSignals() {
	signal.Notify(make(chan os.Signal, 1), // what does not fit is dropped, as all of it is
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGALRM,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGVTALRM, unix.SIGPROF, unix.SIGXCPU, unix.SIGXFSZ,
		unix.SIGABRT, unix.SIGTRAP, unix.SIGSYS, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGSEGV,
		unix.SIGIO, unix.SIGPWR, unix.SIGSTKFLT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
}
