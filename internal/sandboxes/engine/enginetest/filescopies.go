package enginetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// testSourceOfFiles: what runs in the source goes on over several snapshots of its files,
// each of which has what was written before it. Where memory can't be copied it is refused
// with a reason, and nothing is left of the try.
func testSourceOfFiles(t *testing.T, s *Subject) {
	t.Helper()
	const times = 3
	b := s.createBox(t, nil)
	own := s.Own(b.id)
	count := b.startCommand("count", counting("count"))
	defer count.Close()
	var dirs []string
	for i := range times {
		b.typeLine(count, "s")
		b.readUntil(count, "s is "+strconv.Itoa(i+1)+"\n")
		b.runScript("echo " + strconv.Itoa(i) + " >> " + own + "/lines")
		dirs = append(dirs, b.snapshot(engine.ContentsFiles))
	}
	if err := channel.NewWriter(count).WriteFrame(channel.FrameStdin, nil); err != nil {
		t.Fatal(err)
	}
	if r := b.collect(count); r.out != "over at "+strconv.Itoa(times)+"\n" || r.exit.Code != 0 {
		t.Errorf("the counter: %+v", r)
	}
	c := b.restore(t, dirs[1], "k")
	if got := c.runScript("cat " + s.Own(c.id) + "/lines"); got != "0\n1" {
		t.Errorf("the second copy has %q", got)
	}
	if s.hasMemory(t) {
		return
	}
	dir := filepath.Join(t.TempDir(), "memory")
	if err := b.snapshotter().Snapshot(t.Context(), dir, engine.ContentsMemory); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a snapshot of memory: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it left an image: %v", err)
	}
}

// testFilesFullDisk: no image is left, and the source goes on.
func testFilesFullDisk(t *testing.T, s *Subject) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a small disk takes root")
	}
	b := s.createBox(t, nil)
	count := b.startCommand("count", counting("count"))
	defer count.Close()
	place := t.TempDir()
	if err := unix.Mount("tmpfs", place, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(place, 0); err != nil {
			t.Error(err)
		}
	}()
	b.runScript("dd if=/dev/urandom of=" + s.Own(b.id) + "/big bs=1M count=4 2>/dev/null")
	if err := b.snapshotter().Snapshot(t.Context(), filepath.Join(place, "image"), engine.ContentsFiles); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a snapshot beyond the disk: %v", err)
	}
	if left, err := os.ReadDir(place); err != nil || len(left) > 0 {
		t.Errorf("a snapshot that failed left %v (%v)", left, err)
	}
	b.typeLine(count, "on")
	b.readUntil(count, "on is 1\n")
	b.snapshot(engine.ContentsFiles)
}

// testFilesEnding: of what has ended there is no snapshot; of what ends meanwhile there is
// a whole one or none.
func testFilesEnding(t *testing.T, s *Subject) {
	t.Helper()
	for i := range 3 {
		b := s.createBox(t, func(spec *engine.Spec) { spec.ID += "-" + string(rune('a'+i)) })
		written := make(chan error, 1)
		dir := filepath.Join(t.TempDir(), "snapshot")
		go func() { written <- b.snapshotter().Snapshot(t.Context(), dir, engine.ContentsFiles) }()
		for range i { // A little later each time.
			b.answers()
		}
		if err := b.inst.Signal(t.Context(), int(unix.SIGKILL)); err != nil {
			t.Error(err)
		}
		if err := <-written; err == nil {
			b.restore(t, dir, "k")
		} else if _, there := os.Stat(dir); !errors.Is(there, os.ErrNotExist) {
			t.Errorf("a snapshot that failed (%v) left an image: %v", err, there)
		}
		ctx, cancel := context.WithTimeout(t.Context(), longestWait)
		if _, err := b.inst.Wait(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		again := b.snapshotter().Snapshot(t.Context(), filepath.Join(t.TempDir(), "again"), engine.ContentsFiles)
		if !errors.Is(again, fault.ErrConflict) && !errors.Is(again, fault.ErrUnavailable) {
			t.Errorf("a snapshot of what has ended: %v", again)
		}
	}
}

// testFilesRefused: what is wrong with the question.
func testFilesRefused(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	taken := t.TempDir()
	for name, tt := range map[string]struct {
		dir      string
		contents engine.Contents
		want     error
	}{
		"a place that is taken": {taken, engine.ContentsFiles, fault.ErrConflict},
		"no absolute place":     {"here", engine.ContentsFiles, fault.ErrInvalid},
		"unheard-of contents":   {filepath.Join(taken, "x"), "everything", fault.ErrInvalid},
	} {
		if err := b.snapshotter().Snapshot(t.Context(), tt.dir, tt.contents); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(taken); err != nil {
		t.Errorf("what was there is gone: %v", err)
	}
	dir := b.snapshot(engine.ContentsFiles)
	spec := b.copySpec("x")
	spec.ID = b.id
	if _, err := b.restorer(t).Restore(t.Context(), spec, dir); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("an id that is taken: %v", err)
	}
	if got := b.runScript("echo on"); got != "on" {
		t.Errorf("after the refusals: %q", got)
	}
}

// copies tells whether snapshots with such contents can be made here.
func (s *Subject) copies(t *testing.T, contents engine.Contents) bool {
	t.Helper()
	caps, err := s.Engine.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(caps.Enforces, contents.Control())
}
