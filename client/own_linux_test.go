package client_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// TestOwnDaemon: a daemon of another user, at the path of one's own, is sent nothing.
func TestOwnDaemon(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root can listen as somebody else")
	}
	const nobody = 65534
	for name, test := range map[string]struct {
		uid   int
		heard int32
	}{
		"this user's":    {os.Geteuid(), 1},
		"another user's": {nobody, 0},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			var heard atomic.Int32
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				heard.Add(1)
				reply(http.StatusOK, api.Version{Version: "1"})(w, r)
			})}
			l := listenAs(t, socket, test.uid)
			go func() { _ = server.Serve(l) }()
			t.Cleanup(func() { _ = server.Close() })

			_, err := client.Own(socket).Version(t.Context())
			if test.heard == 1 && err != nil {
				t.Fatal(err)
			}
			if test.heard == 0 && (!errors.Is(err, client.ErrStranger) || !strings.Contains(err.Error(), "COFFERDAM_RUNTIME")) {
				t.Errorf("the error is %v", err)
			}
			if heard.Load() != test.heard {
				t.Errorf("the daemon heard %d requests, not %d", heard.Load(), test.heard)
			}
			if _, err := client.New(socket).Version(t.Context()); err != nil || heard.Load() != test.heard+1 {
				t.Errorf("a daemon that is named is not asked, so that the other answer proves nothing: %v", err)
			}
		})
	}
}

// listenAs listens on a socket as a user, by whom the kernel goes when it is asked who listens.
func listenAs(t *testing.T, path string, uid int) net.Listener {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	// Of this thread alone, which ends with its goroutine where it can't be given back.
	runtime.LockOSThread()
	keep, own := ^uintptr(0), uintptr(os.Geteuid())
	_, _, become := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(uid), keep)
	listen := unix.Listen(fd, 16)
	_, _, back := unix.RawSyscall(unix.SYS_SETRESUID, keep, own, keep)
	if become != 0 || listen != nil || back != 0 {
		t.Fatalf("listen as the user %d: %v, %v, %v", uid, become, listen, back)
	}
	runtime.UnlockOSThread()
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
