package daemon

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestABusyGatewayIsNotNone: one whose backlog is full may have counted something, and the end of a sandbox must not say
// that all is on record. The controls are a gateway that has ended, and one that never began: they count nothing.
func TestABusyGatewayIsNotNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "u.sock")
	must(t, settleGateway(t.Context(), path, "sb-1"))
	at := &unix.SockaddrUnix{Name: path}
	socket := func() int {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		return fd
	}
	l := socket()
	must(t, unix.Bind(l, at))
	must(t, unix.Listen(l, 0))
	full := false
	for range 10 {
		fd := socket()
		defer unix.Close(fd)
		if err := unix.Connect(fd, at); errors.Is(err, unix.EAGAIN) {
			full = true
			break
		}
	}
	if !full {
		t.Fatal("INCONCLUSIVE: the backlog takes all")
	}
	if err := settleGateway(t.Context(), path, "sb-1"); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a busy gateway: %v", err)
	}
	must(t, unix.Close(l))
	must(t, settleGateway(t.Context(), path, "sb-1"))
}
