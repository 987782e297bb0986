package sandbox_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// open is the policy of who may do all inside, and publishes two ports.
const open = `
defaults: { action: allow, max_disk_mb: 512, max_memory_mb: 1024, max_cpu: 2 }
published_ports: [ 8080, "9000-9001" ]
`

// put writes a file.
func (s *studio) put(id string, f channel.File, from io.Reader) (channel.FileInfo, error) {
	s.t.Helper()
	f.Op = channel.FileWrite
	conn, _, err := s.OpenFile(s.t.Context(), id, f)
	if err != nil {
		return channel.FileInfo{}, err
	}
	defer conn.Close()
	return channel.WriteFile(conn, from, nil)
}

// fetch reads a file.
func (s *studio) fetch(id string, f channel.File, to io.Writer) (channel.FileInfo, error) {
	s.t.Helper()
	f.Op = channel.FileRead
	conn, info, err := s.OpenFile(s.t.Context(), id, f)
	if err != nil {
		return info, err
	}
	defer conn.Close()
	_, err = channel.NewFileReader(conn, info.Size).WriteTo(to)
	return info, err
}

// paths lists files.
func (s *studio) paths(id string, f channel.File) ([]string, error) {
	s.t.Helper()
	f.Op = channel.FileList
	conn, _, err := s.OpenFile(s.t.Context(), id, f)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var all []string
	err = channel.ReadList(conn, func(part []channel.FileInfo) error {
		for _, info := range part {
			all = append(all, info.Path)
		}
		return nil
	})
	return all, err
}

// TestRealFilesStayInside: whatever path or link is asked for, what is read is the
// sandbox's own, with the user's rights (C-FA-01, C-FA-02).
func TestRealFilesStayInside(t *testing.T) {
	s := newRealStudio(t)
	canary := filepath.Join(s.dir, "canary")
	must(t, os.WriteFile(canary, []byte("of the host"), 0o644))
	id := s.create(s.request(open)).Info().ID
	s.sh(id, "cd /home/agent; ln -s "+canary+" absolute; ln -s ../../../../../../"+canary+" relative; ln -s /proc/1/root hop; ln -s / root; ln -s /proc proc; echo inside > own; ln -s own control")
	// The controls: the canary can be read on the host, and the file of the sandbox through a link.
	if data, err := os.ReadFile(canary); err != nil || string(data) != "of the host" {
		t.Fatalf("INCONCLUSIVE: %q, %v", data, err)
	}
	var got bytes.Buffer
	if _, err := s.fetch(id, channel.File{Path: "~/control"}, &got); err != nil || got.String() != "inside\n" {
		t.Fatalf("INCONCLUSIVE: %q, %v", &got, err)
	}
	for _, user := range []string{"", "root"} {
		for _, path := range []string{
			canary, "/home/agent/absolute", "/home/agent/relative", strings.Repeat("../", 50) + canary[1:], "/home/agent/hop" + canary, "/home/agent/root" + canary,
			"/proc/1/root" + canary, "/proc/self/environ", "/proc/1/environ", "/home/agent/proc/1/environ", "/dev/fd/3", "/proc/self/mem",
		} {
			got.Reset()
			_, err := s.fetch(id, channel.File{Path: path, User: user}, &got)
			if !errors.Is(err, fault.ErrNotFound) && !errors.Is(err, fault.ErrInvalid) && !errors.Is(err, fault.ErrForbidden) {
				t.Errorf("ESCAPED as %q: %s: %q, %v", user, path, &got, err)
			}
			if got.Len() > 0 {
				t.Errorf("ESCAPED as %q: %s: %q", user, path, &got)
			}
		}
	}
	for _, user := range []string{"", "root"} {
		if _, err := s.put(id, channel.File{Path: "/home/agent/absolute", User: user}, strings.NewReader("changed")); err != nil && !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("as %q: %v", user, err)
		}
	}
	if data, err := os.ReadFile(canary); err != nil || string(data) != "of the host" {
		t.Errorf("ESCAPED: the host's file is %q, %v", data, err)
	}
	for path, want := range map[string]error{
		"/usr/bin/new": fault.ErrForbidden, "/etc/hostname": fault.ErrForbidden, "/.cofferdam/bin/cofferdam": fault.ErrForbidden, "": fault.ErrInvalid,
		"/a\x00b": fault.ErrInvalid, "/\xff": fault.ErrInvalid, "/" + strings.Repeat("n", 300): fault.ErrInvalid, strings.Repeat("/d", 3000): fault.ErrInvalid,
	} {
		if _, err := s.put(id, channel.File{Path: path}, strings.NewReader("x")); !errors.Is(err, want) {
			t.Errorf("write %.40q: %v, want %v", path, err, want)
		}
	}
	for _, f := range []channel.File{{Op: channel.FileRead, Path: "/x"}, {Op: "chmod", Path: "/x"}} {
		if _, err := s.File(t.Context(), id, f); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if _, err := s.File(t.Context(), "none", channel.File{Op: channel.FileStat, Path: "/"}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("no such sandbox: %v", err)
	}
}

// TestRealRights: the engine's own kernel, too, gives a file call the rights of the
// user and no more, root's without capabilities (C-FA-02).
func TestRealRights(t *testing.T) {
	s := newRealStudio(t)
	id := s.create(s.request(open)).Info().ID
	for path, user := range map[string]string{"/tmp/of-agent": "", "/tmp/of-root": "root"} {
		info, err := s.put(id, channel.File{Path: path, User: user, Mode: 0o600}, strings.NewReader("secret"))
		if err != nil || info.Owner != strings.TrimPrefix(path, "/tmp/of-") || info.Mode != 0o600 {
			t.Errorf("%+v, %v", info, err)
		}
		for _, reader := range []string{"", "root"} {
			var got bytes.Buffer
			_, err := s.fetch(id, channel.File{Path: path, User: reader}, &got)
			if (reader == user) != (err == nil) || (err != nil && !errors.Is(err, fault.ErrForbidden)) || (err != nil && got.Len() > 0) {
				t.Errorf("%s as %q: %q, %v", path, reader, &got, err)
			}
		}
	}
	if _, err := s.put(id, channel.File{Path: "~/kept"}, strings.NewReader("")); err != nil { // else root may remove the home: it lies in root's directory
		t.Error(err)
	}
	for _, f := range []channel.File{
		{Op: channel.FileRemove, Path: "/home/agent", User: "root"},
		{Op: channel.FileMkdir, Path: "/home/agent/x", User: "root"},
		{Op: channel.FileMove, Path: "/tmp/of-agent", To: "/home/agent/x", User: "root"},
		{Op: channel.FileMkdir, Path: "/etc/x"},
	} {
		if _, err := s.File(t.Context(), id, f); !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	// The agent has come back to itself: it still starts commands of both.
	for user, uid := range map[string]string{"": "1000", "root": "0", "0": "0", "65534": "65534"} {
		c, err := s.Start(t.Context(), id, sandbox.Command{Argv: []string{"/usr/bin/id", "-u"}, Dir: "/", User: user})
		must(t, err)
		if out, exit := s.await(id, c.ID, 0); strings.TrimSpace(out) != uid || exit.Code != 0 {
			t.Errorf("as %q: %q, %+v", user, out, exit)
		}
	}
}

// TestRealFiles: what the engine's own kernel has to do right (C-FA-04, C-FA-08,
// C-FA-09): names, pipes, whole writes, metadata, a list, what is removed.
func TestRealFiles(t *testing.T) {
	s := newRealStudio(t)
	id := s.create(s.request(open)).Info().ID
	names := []string{"with space", "-rf", "*", "new\nline", "\x1b[31m", "\u202ertl", "日本語", strings.Repeat("n", 255)}
	for _, name := range names {
		info, err := s.put(id, channel.File{Path: "~/names/" + name}, strings.NewReader(name))
		if err != nil || info.Path != "/home/agent/names/"+name || info.Owner != "agent" || info.Mode != 0o644 {
			t.Errorf("%q: %+v, %v", name, info, err)
		}
	}
	listed, err := s.paths(id, channel.File{Path: "names"})
	must(t, err)
	slices.Sort(names)
	for i := range listed {
		listed[i] = filepath.Base(listed[i])
	}
	if d := cmp.Diff(names, listed); d != "" {
		t.Error(d)
	}
	s.sh(id, "mkfifo /home/agent/fifo")
	for _, path := range []string{"fifo", "/dev/zero", "/dev/ptmx", "/home"} {
		if _, err := s.fetch(id, channel.File{Path: path}, io.Discard); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("read %s: %v", path, err)
		}
	}
	metadata := map[string]string{"e2b.author": "somebody"}
	info, err := s.put(id, channel.File{Path: "m", Metadata: metadata}, strings.NewReader(""))
	if d := cmp.Diff(metadata, info.Metadata); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	content := func(i int) string { return strings.Repeat(string(rune('a'+i)), 100_000) }
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := s.put(id, channel.File{Path: "shared"}, strings.NewReader(content(i))); err != nil {
				t.Error(err)
			}
			var got bytes.Buffer
			if _, err := s.fetch(id, channel.File{Path: "shared"}, &got); err != nil || got.Len() != 100_000 || strings.Trim(got.String(), got.String()[:1]) != "" {
				t.Errorf("mixed: %d bytes, %v", got.Len(), err)
			}
		})
	}
	all.Wait()
	_, err = s.put(id, channel.File{Path: "/home/agent/shared"}, io.LimitReader(zeros{}, 600<<20))
	if !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("more than the disk has: %v", err)
	}
	s.sh(id, "cd /home/agent && mkdir -p deep/$(seq -s / 300) && test $(stat -c %s shared) = 100000 && ! ls -a | grep -q cofferdam-")
	for _, path := range []string{"deep", "names", "fifo"} {
		if _, err := s.File(t.Context(), id, channel.File{Op: channel.FileRemove, Path: path}); err != nil {
			t.Errorf("remove %s: %v", path, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestRealStreams: a watch, a connection and a write that are open live through a
// pause, and new ones can be opened afterwards.
func TestRealStreams(t *testing.T) {
	s := newRealStudio(t)
	ctx := t.Context()
	id := s.create(s.request(open)).Info().ID
	server, err := s.Start(ctx, id, sandbox.Command{Argv: []string{"/usr/bin/python3", "-u", "-c", echoServer}, Dir: "/"})
	must(t, err)
	if first := s.listens(id, server.ID); first != channel.FrameStarted {
		t.Errorf("the first frame is of type %d", first)
	}
	dialed, err := s.Dial(ctx, id, 8080)
	must(t, err)
	defer dialed.Close()
	s.echoes(dialed, "before")
	watch, _, err := s.OpenFile(ctx, id, channel.File{Op: channel.FileWatch, Path: "~", Recursive: true})
	must(t, err)
	defer watch.Close()
	write, _, err := s.OpenFile(ctx, id, channel.File{Op: channel.FileWrite, Path: "~/sub/half"})
	must(t, err)
	defer write.Close()
	must(t, write.WriteFrame(channel.FrameStdin, []byte("first ")))

	must(t, s.Pause(ctx, id))
	for what, err := range map[string]error{
		"stat": second(s.File(ctx, id, channel.File{Op: channel.FileStat, Path: "/"})), "dial": second(s.Dial(ctx, id, 8080)),
		"send": s.Send(ctx, id, server.ID, channel.FrameStdin, nil), "usage": second(s.Usage(ctx, id)),
	} {
		if !errors.Is(err, fault.ErrConflict) {
			t.Errorf("%s of a paused sandbox: %v", what, err)
		}
	}
	if _, err := s.Resume(ctx, id); err != nil {
		t.Fatal(err)
	}

	must(t, write.WriteFrame(channel.FrameStdin, []byte("second")))
	must(t, write.WriteFrame(channel.FrameStdin, nil))
	var reply channel.Reply
	must(t, write.ReadJSON(channel.FrameReply, &reply))
	must(t, reply.Err())
	var got bytes.Buffer
	if _, err := s.fetch(id, channel.File{Path: "~/sub/half"}, &got); err != nil || got.String() != "first second" {
		t.Errorf("%q, %v", &got, err)
	}
	want := []channel.FileEvent{{Name: "sub", Change: channel.ChangeCreate}, {Name: "sub/half", Change: channel.ChangeCreate}, {Name: "sub/half", Change: channel.ChangeWrite}}
	for len(want) > 0 {
		kind, payload, err := watch.ReadFrame()
		must(t, err)
		events, err := channel.DecodeEvents(kind, payload)
		must(t, err)
		for _, e := range events.Events {
			if i := slices.Index(want, e); i >= 0 {
				want = slices.Delete(want, i, i+1)
			}
		}
	}
	s.echoes(dialed, "after")
	again, err := s.Dial(ctx, id, 8080)
	must(t, err)
	defer again.Close()
	s.echoes(again, "again")
	if _, err := s.Dial(ctx, id, 9000); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a port on which nothing listens: %v", err)
	}
	for _, port := range []int{22, 53, 8081} {
		if _, err := s.Dial(ctx, id, port); !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("port %d: %v", port, err)
		}
	}
	if _, err := s.Dial(ctx, id, 0); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("port 0: %v", err)
	}
	s.closesTalker(id)
	must(t, s.Send(ctx, id, server.ID, channel.FrameSignal, []byte(`{"name":"KILL"}`)))
	_, exit := s.await(id, server.ID, keeper.FromNow)
	if exit.Signal != "KILL" {
		t.Errorf("%+v", exit)
	}
	must(t, s.Destroy(ctx, id))
	if _, _, err := watch.ReadFrame(); err == nil {
		t.Error("a watch outlived its sandbox")
	}
}

// listens waits until a program says so, and returns the type of the first frame.
func (s *studio) listens(id, command string) (first channel.FrameType) {
	s.t.Helper()
	var said strings.Builder
	s.watch(id, command, 0, func(kind channel.FrameType, payload []byte) bool {
		if first == 0 {
			first = kind
		}
		switch kind { //nolint:exhaustive // the others say nothing of this
		case channel.FrameStdout:
			said.Write(payload)
		case channel.FrameExit:
			s.t.Fatalf("the program ended: %s", payload)
		}
		return !strings.Contains(said.String(), "listens")
	})
	return first
}

// closesTalker closes the connection to a program that never stops talking, which
// must hear of it.
func (s *studio) closesTalker(id string) {
	s.t.Helper()
	ctx := s.t.Context()
	talker, err := s.Start(ctx, id, sandbox.Command{Argv: []string{"/usr/bin/python3", "-u", "-c", talkingServer}, Dir: "/"})
	must(s.t, err)
	s.listens(id, talker.ID)
	conn, err := s.Dial(ctx, id, 9001)
	must(s.t, err)
	if _, err := io.CopyN(io.Discard, conn, 1<<20); err != nil {
		s.t.Fatal(err)
	}
	must(s.t, conn.Close())
	if _, exit := s.await(id, talker.ID, 0); exit.Code != 7 {
		s.t.Errorf("the program did not hear of the end: %+v", exit)
	}
}

const talkingServer = `
import socket, sys
l = socket.create_server(("127.0.0.1", 9001))
print("listens")
c, _ = l.accept()
try:
    while True:
        c.sendall(b"x" * 65536)
except OSError:
    sys.exit(7)
`

func second[T any](_ T, err error) error { return err }

const echoServer = `
import socket, threading
l = socket.create_server(("127.0.0.1", 8080))
print("listens")
def serve(c):
    while data := c.recv(4096):
        c.sendall(data)
while True:
    c, _ = l.accept()
    threading.Thread(target=serve, args=(c,), daemon=True).start()
`

// echoes says something and hears it.
func (s *studio) echoes(conn io.ReadWriter, text string) {
	s.t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		s.t.Fatalf("%q, %v", got, err)
	}
}

// TestRealUsage is plausible, and grows by what is written.
func TestRealUsage(t *testing.T) {
	s := newRealStudio(t)
	id := s.create(s.request(open)).Info().ID
	first, err := s.Usage(t.Context(), id)
	must(t, err)
	t.Logf("%+v", first)
	if first.MemoryBytes <= 0 || first.Processes <= 0 || first.CPUNanos <= 0 || first.CPUPercent != 0 || first.DiskLimit <= 0 || first.DiskBytes < 0 || first.DiskBytes > first.DiskLimit {
		t.Errorf("%+v", first)
	}
	if _, err := s.put(id, channel.File{Path: "zeros"}, io.LimitReader(zeros{}, 32<<20)); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(longestWait)
	for {
		next, err := s.Usage(t.Context(), id)
		must(t, err)
		if next.DiskBytes >= first.DiskBytes+32<<20 && next.CPUPercent > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v, then %+v", first, next)
		}
	}
}

// TestRealRaces: whatever is asked of a sandbox while it is paused, goes on, and is
// destroyed has an answer, or an error that says why, and no stream hangs (C-EX-03).
func TestRealRaces(t *testing.T) {
	s := newRealStudio(t)
	ctx := t.Context()
	id := s.create(s.request(open)).Info().ID
	typed := func(what string, err error) {
		t.Helper()
		for _, category := range []error{nil, fault.ErrConflict, fault.ErrNotFound, fault.ErrUnavailable} {
			if errors.Is(err, category) {
				return
			}
		}
		t.Errorf("%s: %v", what, err)
	}
	var over atomic.Bool
	var done [4]atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for !over.Load() {
				_, err := s.put(id, channel.File{Path: "raced"}, strings.NewReader("x"))
				typed("write", err)
				if err == nil {
					done[0].Add(1)
				}
			}
		})
		all.Go(func() {
			for !over.Load() {
				_, err := s.File(ctx, id, channel.File{Op: channel.FileStat, Path: "/"})
				typed("stat", err)
				if err == nil {
					done[1].Add(1)
				}
			}
		})
		all.Go(func() {
			for !over.Load() {
				c, err := s.Start(ctx, id, sandbox.Command{Argv: []string{"/usr/bin/true"}, Dir: "/"})
				typed("start", err)
				if err != nil {
					continue
				}
				conn, err := s.Attach(ctx, id, c.ID, 0)
				typed("attach", err)
				if err == nil {
					_, err = io.Copy(io.Discard, conn)
					typed("output", err)
					_ = conn.Close()
					done[2].Add(1)
				}
			}
		})
	}
	all.Go(func() {
		for !over.Load() {
			watch, _, err := s.OpenFile(ctx, id, channel.File{Op: channel.FileWatch, Path: "~"})
			typed("watch", err)
			if err == nil {
				_ = watch.Close()
				done[3].Add(1)
			}
		}
	})
	for range 2 {
		for i := range done {
			done[i].Store(0)
		}
		for i := range done {
			for done[i].Load() < 3 {
				time.Sleep(time.Millisecond)
				if ctx.Err() != nil {
					t.Fatal(ctx.Err())
				}
			}
		}
		typed("pause", s.Pause(ctx, id))
		_, err := s.Resume(ctx, id)
		typed("resume", err)
	}
	must(t, s.Destroy(ctx, id))
	over.Store(true)
	all.Wait()
	if _, err := s.File(ctx, id, channel.File{Op: channel.FileStat, Path: "/"}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("after the end: %v", err)
	}
}
