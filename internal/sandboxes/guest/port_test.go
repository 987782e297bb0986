package guest

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAPort: a device that can be polled is taken for the channel, if nobody polls it yet, as
// Go does from its start with a stdin that does not block. A file that is none is said to be none.
func TestAPort(t *testing.T) {
	open := func(path string, flags int) int {
		t.Helper()
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY|flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) }) // nothing was written to it
		return fd
	}
	port, err := takePort(open("/dev/ptmx", 0))
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := port.Read(make([]byte, 1))
		waited <- err
	}()
	if err := port.Close(); err != nil {
		t.Error(err)
	}
	if err := <-waited; !errors.Is(err, os.ErrClosed) {
		t.Errorf("a Read that waited ended with %v", err)
	}
	if _, err := takePort(open("/dev/ptmx", unix.O_NONBLOCK)); err == nil || !strings.Contains(err.Error(), "polled twice") {
		t.Errorf("one that is polled already: %v", err)
	}
	if _, err := takePort(open("/dev/null", 0)); err == nil || errors.Is(err, errNoPort) {
		t.Errorf("a device that can't be polled: %v", err)
	}
	if _, err := takePort(open(t.TempDir(), unix.O_TMPFILE)); !errors.Is(err, errNoPort) {
		t.Errorf("a file: %v", err)
	}
}
