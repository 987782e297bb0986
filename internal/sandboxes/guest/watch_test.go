package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// watching is a watch as the host sees it.
type watching struct {
	t      *testing.T
	stream *channel.Conn
	seen   []string
	lost   bool
}

func (h *host) watch(f channel.File) *watching {
	h.t.Helper()
	f.Op = channel.FileWatch
	stream, _, err := h.openFile(f)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = stream.Close() })
	return &watching{t: h.t, stream: stream}
}

// nextEvents reads a watch's next frame.
func nextEvents(stream *channel.Conn) (channel.FileEvents, error) {
	kind, payload, err := stream.ReadFrame()
	if err != nil {
		return channel.FileEvents{}, err
	}
	return channel.DecodeEvents(kind, payload)
}

// until reads changes until one is what was asked for, and returns those before
// it since the last call.
func (w *watching) until(want string) []string {
	w.t.Helper()
	for {
		for i, got := range w.seen {
			if got == want {
				before := w.seen[:i]
				w.seen = w.seen[i+1:]
				return before
			}
		}
		events, err := nextEvents(w.stream)
		if err != nil {
			w.t.Fatalf("no %q, but %q and %v", want, w.seen, err)
		}
		w.lost = w.lost || events.Lost
		for _, e := range events.Events {
			w.seen = append(w.seen, string(e.Change)+" "+e.Name)
		}
	}
}

func TestWatch(t *testing.T) {
	a := startAgent(t, nil)
	if err := os.MkdirAll(a.root+"/w/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	w := a.watch(channel.File{Path: "/w"})
	path := func(name string) string { return filepath.Join(a.root, "w", name) }
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(os.WriteFile(path("f"), []byte("x"), 0o600))
	w.until("create f")
	w.until("write f")
	do(os.Chmod(path("f"), 0o644))
	w.until("chmod f")
	do(os.Rename(path("f"), path("g")))
	w.until("rename f")
	w.until("create g")
	do(os.WriteFile(path("sub/below"), nil, 0o600))
	do(os.Remove(path("g")))
	for _, seen := range w.until("remove g") {
		if strings.Contains(seen, "below") {
			t.Errorf("not recursive, and yet %q", seen)
		}
	}
	// A file that the host itself writes looks as if it was written in place.
	if _, err := a.writeFile(channel.File{Path: "/w/ours"}, strings.NewReader("1")); err != nil {
		t.Fatal(err)
	}
	before := append(w.until("create ours"), w.until("chmod ours")...)
	before = append(before, w.until("write ours")...)
	if _, err := a.writeFile(channel.File{Path: "/w/ours"}, strings.NewReader("2")); err != nil {
		t.Fatal(err)
	}
	before = append(before, w.until("write ours")...)
	if len(before) != 0 {
		t.Errorf("more than was done: %q", before)
	}
	do(os.RemoveAll(path("")))
	w.until("remove .")
	if _, err := nextEvents(w.stream); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

func TestWatchBelow(t *testing.T) {
	a := startAgent(t, nil)
	if err := os.MkdirAll(a.root+"/w/old", 0o755); err != nil {
		t.Fatal(err)
	}
	w := a.watch(channel.File{Path: "/w", Recursive: true})
	a.sh("cd " + a.root + "/w && touch old/f && mkdir -p new/a/b && touch new/a/b/f")
	w.until("create old/f")
	w.until("create new")
	w.until("create new/a/b/f")
	a.sh("cd " + a.root + "/w && mv new moved")
	w.until("rename new")
	w.until("create moved")
	w.until("create moved/a/b/f") // it is watched under its new name from here on
	a.sh("echo x > " + a.root + "/w/moved/a/b/f")
	w.until("write moved/a/b/f")
	a.sh("cd " + a.root + "/w && rm -r moved")
	w.until("remove moved")
	a.sh("mkdir " + a.root + "/w/moved && echo y > " + a.root + "/w/moved/again") // the same name once more
	w.until("create moved/again")
}

// A host that does not read makes the agent forget changes and say so; memory and
// the other calls stay as they are.
func TestWatchOverflow(t *testing.T) {
	a := startAgent(t, nil)
	if err := os.Mkdir(a.root+"/w", 0o755); err != nil {
		t.Fatal(err)
	}
	w := a.watch(channel.File{Path: "/w"})
	long := strings.Repeat("n", 200)
	for i := range 20_000 { // more than the queue and the stream hold
		name := fmt.Sprintf("%s/w/%s%d", a.root, long, i)
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Remove(name)); err != nil {
			t.Fatal(err)
		}
	}
	a.mustCall(channel.Call{Kind: channel.CallPing})
	for !w.lost {
		events, err := nextEvents(w.stream)
		if err != nil {
			t.Fatal(err)
		}
		w.lost = events.Lost
	}
	if err := os.WriteFile(a.root+"/w/after", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.until("create after")
}

// The agent ends while a watch and a connection are open (goleak looks).
func TestTheAgentEndsUnderStreams(t *testing.T) {
	a := startAgent(t, nil)
	a.watch(channel.File{Path: "/"})
	listener := listenHere(t, "tcp", "127.0.0.1:0")
	stream, reply := a.call(channel.Call{Kind: channel.CallDial, Port: portOf(listener)})
	if !reply.OK {
		t.Fatal(reply.Error)
	}
	t.Cleanup(func() { _ = stream.Close() })
}
