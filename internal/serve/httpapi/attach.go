package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// Protocol is the Upgrade token of an attachment.
const Protocol = "cofferdam-frames"

func milliseconds(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// commandRoutes are about commands of sandboxes, and connections to them.
type commandRoutes struct{ *desk }

// attach upgrades the connection and lets the keeper's frames and the client's
// pass; closing either side ends the attachment, never the command.
func (s commandRoutes) attach(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get("Upgrade") != Protocol {
		return fault.Invalid("attach needs the header Upgrade: %s", Protocol)
	}
	offset, err := strconv.ParseInt("0"+r.URL.Query().Get("offset"), 10, 64)
	if err != nil {
		return fault.Invalid("the offset %q is not a number of bytes", r.URL.Query().Get("offset"))
	}
	if _, err := s.ownSandbox(r); err != nil {
		return err
	}
	keeper, err := s.cfg.Sandboxes.Attach(r.Context(), r.PathValue("id"), r.PathValue("cmd"), offset)
	if err != nil {
		return err
	}
	defer keeper.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+Protocol+"\r\n\r\n"); err != nil {
		return errAnswered
	}
	defer safego.When(r.Context(), func() { // the caller's token is not valid any more
		client.Close()
		keeper.Close()
	})()
	defer whenGone(client, keeper)()
	passBoth(client, buffered.Reader, keeper)
	return nil
}

// whenGone tells an attachment when its client has closed the connection, which nobody reads
// while the command takes no input. The function that it returns ends the looking.
func whenGone(client, attachment net.Conn) (stop func()) {
	told, ok := attachment.(interface{ ClientGone() })
	inner, isSocket := backend.Innermost(client).(interface{ File() (*os.File, error) })
	if !ok || !isSocket {
		return func() {}
	}
	file, err := inner.File() // another descriptor: pass reads the first one
	if err != nil {
		return func() {}
	}
	var looking sync.WaitGroup
	safego.In(&looking, func() {
		if awaitHangUp(file) == nil {
			told.ClientGone()
		}
	})
	return func() {
		_ = file.Close()
		looking.Wait()
	}
}

// awaitHangUp returns when the other end of a socket was closed, or shut for what it says; an
// error: when file was closed.
func awaitHangUp(file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool {
		look := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(look, 0)
		return err == nil && n > 0 && look[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
}

// passBoth copies both ways until both directions have ended. The client's end of
// input closes only that half; the end of the keeper's frames closes both.
func passBoth(client net.Conn, clientIn *bufio.Reader, keeper net.Conn) {
	var wg sync.WaitGroup
	safego.In(&wg, func() {
		io.Copy(keeper, clientIn) //nolint:errcheck // either side may end at any time
		closeWrite(keeper)
	})
	io.Copy(client, keeper) //nolint:errcheck // as above
	client.Close()
	keeper.Close()
	wg.Wait()
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		half.CloseWrite() //nolint:errcheck // the connection ends anyway
	}
}
