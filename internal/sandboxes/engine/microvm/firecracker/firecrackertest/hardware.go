package firecrackertest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Hardware is what guests run on: each is a process of the host, whose stdin and stdout are
// the socket on which it waits for its channel. Paused means stopped, with all that it
// started. The process itself is saved, while its monitor is gone; a guest that is
// loaded a second time is another process, at its begin.
type Hardware struct {
	Device string // the socket
	Port   uint32 // on which guests wait
	// Run is the command of a guest, with a name that no other has; of one that is loaded
	// while its source goes on, it is to be as good as a copy as it can.
	Run func(name string, copied bool) *exec.Cmd

	dir    string
	ending sync.WaitGroup

	mu     sync.Mutex // guards the rest
	count  int
	guests map[string]*guestProcess // by their monitor's id
	kept   map[string]*guestProcess // by their word: saved, and without a monitor
	loads  []string                 // words that were loaded
	all    []*guestProcess          // that were ever started
}

// guestProcess is a guest.
type guestProcess struct {
	cmd    *exec.Cmd
	socket string
	word   string
	life   net.Conn // of its monitor
	paused bool
	saved  bool
}

// NewHardware makes one in a directory with a short name, until the test ends.
func NewHardware(t *testing.T, dir string, port uint32, run func(name string, copied bool) *exec.Cmd) *Hardware {
	t.Helper()
	h := &Hardware{Device: filepath.Join(dir, "hw"), Port: port, Run: run, dir: dir, guests: map[string]*guestProcess{}, kept: map[string]*guestProcess{}}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", h.Device)
	if err == nil {
		err = os.Chmod(h.Device, 0o666) //nolint:gosec // monitors are other users
	}
	if err != nil {
		t.Fatal(err)
	}
	safego.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			safego.Go(func() { h.serveOrder(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		h.mu.Lock()
		for _, all := range []map[string]*guestProcess{h.guests, h.kept} {
			for _, p := range all {
				_ = p.cmd.Process.Kill()
			}
		}
		h.mu.Unlock()
		h.ending.Wait()
		if t.Failed() {
			h.showSaid(t)
		}
	})
	return h
}

// showSaid logs what the guests wrote to their stderr, and how each ended.
func (h *Hardware) showSaid(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.all {
		said, err := os.ReadFile(p.socket + ".err")
		t.Logf("%s: %v, stderr %q (%v)", p.word, p.cmd.ProcessState, said, err)
	}
}

// Break has the guest of a monitor die of what only hardware can do.
func (h *Hardware) Break(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.guests[id]
	if p == nil {
		return fmt.Errorf("there is no guest of %s", id)
	}
	return p.life.Close()
}

// Loads are the words of guests that were loaded, in turn.
func (h *Hardware) Loads() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.loads)
}

// serveOrder does one order. The connection of a start or load is the guest's life.
func (h *Hardware) serveOrder(conn net.Conn) {
	defer conn.Close()
	var o order
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &o) != nil {
		return
	}
	var stream net.Conn
	found, err := h.doOrder(o, conn, &stream)
	if err != nil {
		found.Error = err.Error()
	}
	if json.NewEncoder(conn).Encode(found) != nil || err != nil {
		return
	}
	switch o.Do {
	case "start", "load":
		_, _ = io.Copy(io.Discard, conn)
		h.loseGuest(o.ID, conn)
	case "connect":
		safego.Go(func() {
			_, _ = io.Copy(stream, conn)
			_ = stream.Close()
		})
		_, _ = io.Copy(conn, stream)
	}
}

func (h *Hardware) doOrder(o order, life net.Conn, stream *net.Conn) (outcome, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.Do == "start" {
		return outcome{}, h.startGuest(o.ID, life, false)
	}
	if o.Do == "load" {
		return outcome{}, h.loadGuest(o, life)
	}
	p := h.guests[o.ID]
	if p == nil {
		return outcome{}, fmt.Errorf("there is no guest of %s", o.ID)
	}
	switch o.Do {
	case "pause":
		p.paused = true
		return outcome{}, signalTree(p.cmd.Process.Pid, unix.SIGSTOP)
	case "resume":
		p.paused, p.saved = false, false
		return outcome{}, signalTree(p.cmd.Process.Pid, unix.SIGCONT)
	case "save":
		p.saved = true
		return outcome{Word: p.word}, nil
	case "connect":
		if o.Port != h.Port {
			return outcome{}, errors.New("nobody waits on that port")
		}
		var err error
		*stream, err = (&net.Dialer{}).DialContext(context.Background(), "unix", p.socket)
		return outcome{}, err
	}
	return outcome{}, fmt.Errorf("it can't %s", o.Do)
}

// startGuest starts a guest. Needs mu.
func (h *Hardware) startGuest(id string, life net.Conn, copied bool) error {
	if h.guests[id] != nil {
		return fmt.Errorf("there is a guest of %s already", id)
	}
	h.count++
	word := fmt.Sprintf("guest-%d", h.count)
	p := &guestProcess{socket: filepath.Join(h.dir, word), word: word, life: life}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.socket, Net: "unix"})
	if err != nil {
		return err
	}
	defer listener.Close()
	listener.SetUnlinkOnClose(false)
	file, err := listener.File()
	if err != nil {
		return err
	}
	defer file.Close()
	p.cmd = h.Run(word, copied)
	said, err := os.Create(p.socket + ".err")
	if err != nil {
		return err
	}
	defer said.Close()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = file, file, said
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	safego.In(&h.ending, func() { _ = p.cmd.Wait() })
	h.guests[id] = p
	h.all = append(h.all, p)
	return nil
}

// loadGuest makes a guest of what was saved. Needs mu.
func (h *Hardware) loadGuest(o order, life net.Conn) error {
	h.loads = append(h.loads, o.Word)
	p := h.kept[o.Word]
	if p == nil { // its source goes on
		return h.startGuest(o.ID, life, true)
	}
	delete(h.kept, o.Word)
	p.life = life
	h.guests[o.ID] = p
	return nil
}

// loseGuest takes away the guest of a monitor that is gone, unless it was saved.
func (h *Hardware) loseGuest(id string, life net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.guests[id]
	if p == nil || p.life != life {
		return
	}
	delete(h.guests, id)
	if p.paused && p.saved {
		h.kept[p.word] = p
		return
	}
	_ = signalTree(p.cmd.Process.Pid, unix.SIGKILL)
}

// signalTree reaches a process and all that it started.
func signalTree(pid int, sig unix.Signal) error {
	if err := unix.Kill(pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	reached := map[int]bool{pid: true}
	for more := true; more; {
		more = false
		table, err := process.Table()
		if err != nil {
			return err
		}
		for _, p := range table {
			if reached[p.Parent] && !reached[p.Pid] {
				reached[p.Pid], more = true, true
				_ = unix.Kill(p.Pid, sig) // it may have ended
			}
		}
	}
	return nil
}
