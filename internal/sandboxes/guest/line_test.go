package guest

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel/resumable"
)

// TestAChannelThatIsLost: the agent's end waits for the host to connect again, and nothing of
// what either had said is lost.
func TestAChannelThatIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(int(file.Fd()), true); err != nil {
		t.Fatal(err)
	}
	inside, host := resumable.New(), resumable.New()
	defer host.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		attend(file, inside)
	}()
	connect := func() net.Conn {
		t.Helper()
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if err := host.Attach(conn); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	for _, word := range []string{"one", "two", "three"} {
		conn := connect()
		for _, way := range []struct {
			from io.Writer
			to   io.Reader
		}{{host, inside}, {inside, host}} {
			got := make([]byte, len(word))
			go func() { _, _ = way.from.Write([]byte(word)) }()
			if _, err := io.ReadFull(way.to, got); err != nil || !bytes.Equal(got, []byte(word)) {
				t.Errorf("%q arrived for %q (%v)", got, word, err)
			}
		}
		_ = conn.Close()
	}
	_ = file.Close()
	<-ended
	if _, err := inside.Read(make([]byte, 1)); err == nil {
		t.Error("a channel on which nobody can connect any more goes on")
	}
}
