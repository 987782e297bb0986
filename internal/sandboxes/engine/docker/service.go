package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// askTimeout bounds a question that a service answers at once.
const askTimeout = 20 * time.Second

// service is a connection to the Docker daemon. Close it.
type service struct {
	*client.Client

	socket string
}

// connectService makes a client; nothing is asked yet.
func connectService(host string) (service, error) {
	socket, ok := strings.CutPrefix(host, "unix://")
	if !ok || socket == "" || socket[0] != '/' {
		return service{}, fault.Invalid("docker.host is %q, and must be the socket of a Docker daemon on this host, as unix:///var/run/docker.sock", host)
	}
	c, err := client.New(client.WithHost(host))
	if err != nil {
		return service{}, err
	}
	return service{Client: c, socket: socket}, nil
}

// dialHost connects and agrees on a version of the API. A service that does not answer is fault.ErrUnavailable with the remedy.
func dialHost(ctx context.Context, host string) (service, error) {
	s, err := connectService(host)
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if _, err := s.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return s, errors.Join(s.absent(err), s.Close())
	}
	return s, nil
}

// absent says what to do about a service that does not answer.
func (s service) absent(err error) error {
	switch _, there := os.Stat(s.socket); {
	case errors.Is(there, os.ErrNotExist):
		return fault.Wrap(fault.ErrUnavailable, there, "there is no Docker daemon at %s: install the package docker.io and start it, or set docker.host in the configuration", s.socket)
	case errors.Is(err, os.ErrPermission):
		return fault.Wrap(fault.ErrUnavailable, err, "the Docker daemon at %s lets this user in no further: run the daemon as root", s.socket)
	default:
		return fault.Wrap(fault.ErrUnavailable, err, "the Docker daemon at %s does not answer: start it (systemctl start docker), or set docker.host in the configuration", s.socket)
	}
}

// isLost tells whether an error says that there is no service any more, not what it answered:
// one that dies in the middle cuts its answer off.
func isLost(err error) bool {
	return client.IsErrConnectionFailed(err) || errors.Is(err, fault.ErrUnavailable) || errors.Is(err, io.ErrUnexpectedEOF)
}

// isGone tells whether the service does not know what was asked for.
func isGone(err error) bool { return errdefs.IsNotFound(err) }

// listener is the process that listens on the socket, the service or what started it: its
// mounts are those that the service has.
func (s service) listener(ctx context.Context) (process.ID, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
	if err != nil {
		return process.ID{}, s.absent(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn() //nolint:forcetypeassert // of a dial to "unix"
	if err != nil {
		return process.ID{}, err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || failed != nil {
		return process.ID{}, errors.Join(err, failed)
	}
	if peer.Pid <= 0 {
		return process.ID{}, fault.New(fault.ErrUnavailable, "the Docker daemon at %s is no process of this host that can be seen; the engine docker shows it mounts, so it must run on the same machine", s.socket)
	}
	id, err := process.Of(int(peer.Pid))
	if errors.Is(err, process.ErrOver) {
		return id, s.absent(err)
	}
	return id, err
}

// openFileLimit is the limit of open files that the service can give: without CAP_SYS_RESOURCE none
// beyond its own.
func (s service) openFileLimit(ctx context.Context) (int64, error) {
	id, err := s.listener(ctx)
	if err != nil {
		return 0, err
	}
	var own unix.Rlimit
	if err := unix.Prlimit(id.Pid, unix.RLIMIT_NOFILE, nil, &own); err != nil {
		return 0, fmt.Errorf("the Docker daemon's limit of open files: %w", err)
	}
	return int64(min(noFile, own.Max)), nil
}

// withinMounts runs f where the service sees the mounts that it makes: in the mount namespace of
// who listens on the socket, on a thread that nothing else uses.
func (s service) withinMounts(ctx context.Context, f func() error) error {
	id, err := s.listener(ctx)
	if err != nil {
		return err
	}
	ns, err := s.mountsOf(id)
	if err != nil {
		return err
	}
	defer ns.Close()
	return aside.doOnThread(func() error { return enterMounts(ns, f) })
}

// mountsOf holds the mount namespace of a process. It is for the caller's own thread: one that
// was in a service's mounts before has that one's /proc, in which the number may be nobody's.
func (s service) mountsOf(id process.ID) (*os.File, error) {
	ns, err := os.Open("/proc/" + strconv.Itoa(id.Pid) + "/ns/mnt")
	if !id.Is() { // asked now that they are held: they may be those of another process
		if err == nil {
			_ = ns.Close() // it was read by nobody
		}
		return nil, s.absent(process.ErrOver)
	}
	if err != nil {
		return nil, fmt.Errorf("find the Docker daemon's mounts: %w", err)
	}
	return ns, nil
}

// enterMounts runs f in a mount namespace, on a thread that stays there.
func enterMounts(ns *os.File, f func() error) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("a working directory of its own: %w", err)
	}
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the Docker daemon's mounts: %w", err)
	}
	return f()
}

// checkService refuses a service with which this engine's promises can't be kept.
func checkService(ctx context.Context, s service, info system.Info) error {
	version, err := s.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return s.absent(err)
	}
	for _, part := range version.Components {
		if strings.Contains(part.Name, "Podman") {
			return fault.New(fault.ErrUnavailable, "%s is Podman's socket, which lets nobody attach to a container before it starts, and does not mask what of the host's kernel a container would see, and the engine docker needs both; use Docker's daemon, or the engine runc or gvisor", s.socket)
		}
	}
	if info.OSType != "linux" {
		return fault.New(fault.ErrUnavailable, "the Docker daemon at %s runs %q containers, not linux", s.socket, info.OSType)
	}
	for _, option := range info.SecurityOptions {
		if slices.Contains(strings.Split(option, ","), "name=rootless") {
			return fault.New(fault.ErrUnavailable, "the Docker daemon at %s is rootless, and can't show the engine docker's mounts to containers; use one that is root", s.socket)
		}
		if slices.Contains(strings.Split(option, ","), "name=userns") {
			return fault.New(fault.ErrUnavailable, "the Docker daemon at %s maps users (userns-remap), which the engine docker's mounts do not know; use one without, or the engine runc, which maps them itself", s.socket)
		}
	}
	return nil
}
