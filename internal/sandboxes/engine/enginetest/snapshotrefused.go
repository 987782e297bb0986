package enginetest

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// testDamagedSnapshot: a byte flipped, a file cut short, taken away, added or
// swapped. Nothing starts, nothing is left, and whole again it restores.
func testDamagedSnapshot(contents engine.Contents) func(*testing.T, *Subject) {
	return func(t *testing.T, s *Subject) {
		t.Helper()
		b := s.createBox(t, nil)
		dir := b.snapshot(contents)
		other := b.snapshot(contents)
		whole := contentOf(t, dir)
		refused := func(what string) {
			t.Helper()
			spec := b.copySpec("r")
			inst, err := b.restorer(t).Restore(t.Context(), spec, dir)
			if err == nil {
				t.Errorf("%s: it was restored: %v", what, inst.Destroy(t.Context()))
			}
			if !errors.Is(err, fault.ErrConflict) {
				t.Errorf("%s: %v", what, err)
			}
			s.nothingLeft(t, spec.ID)
			putBack(t, dir, whole)
		}
		for _, name := range slices.Sorted(maps.Keys(whole)) {
			path, data := filepath.Join(dir, name), whole[name]
			flipped := bytes.Clone(data)
			flipped[len(flipped)/2] ^= 1
			writeFile(t, path, flipped)
			refused("a flipped byte of " + name)
			writeFile(t, path, data[:len(data)-1])
			refused(name + " cut short")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			refused(name + " missing")
			if swapped, err := os.ReadFile(filepath.Join(other, name)); err == nil && !bytes.Equal(swapped, data) {
				writeFile(t, path, swapped)
				refused(name + " of another snapshot")
			}
		}
		writeFile(t, filepath.Join(dir, "more"), []byte("x"))
		refused("a file more")
		if _, err := b.restorer(t).Restore(t.Context(), b.copySpec("r"), filepath.Join(dir, "absent")); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("no image at all: %v", err)
		}
		b.restore(t, dir, "whole")
	}
}

func contentOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 2 {
		t.Fatalf("the snapshot holds %v (%v)", entries, err)
	}
	all := map[string][]byte{}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = data
	}
	return all
}

func putBack(t *testing.T, dir string, whole map[string][]byte) {
	t.Helper()
	_ = os.Remove(filepath.Join(dir, "more"))
	for name, data := range whole {
		writeFile(t, filepath.Join(dir, name), data)
	}
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// testSnapshotOfAnother: memory is not restored into what it was not made in.
func testSnapshotOfAnother(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	dir := b.snapshot(engine.ContentsMemory)
	for name, change := range map[string]func(*engine.Spec){
		"another mount": func(spec *engine.Spec) {
			spec.Mounts = append(slices.Clone(spec.Mounts), engine.Mount{Destination: "/more", SizeBytes: 1 << 20})
		},
		"a mount less":      func(spec *engine.Spec) { spec.Mounts = spec.Mounts[1:] },
		"a writable one":    func(spec *engine.Spec) { spec.Mounts = slices.Clone(spec.Mounts); spec.Mounts[0].ReadOnly = false },
		"another owner":     func(spec *engine.Spec) { spec.Owner.HostUID++ },
		"another PID 1":     func(spec *engine.Spec) { spec.Init = append(slices.Clone(spec.Init), "more") },
		"a smaller disk":    func(spec *engine.Spec) { spec.Limits.DiskBytes /= 2 },
		"a root unheard of": func(spec *engine.Spec) { spec.Root.Path = t.TempDir(); spec.Root.Kind = engine.RootDir },
	} {
		spec := b.copySpec("o")
		change(&spec)
		inst, err := b.restorer(t).Restore(t.Context(), spec, dir)
		if err == nil {
			t.Errorf("%s: it was restored: %v", name, inst.Destroy(t.Context()))
		}
		if !errors.Is(err, fault.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
		s.nothingLeft(t, spec.ID)
	}
	if _, err := b.restorer(t).Restore(t.Context(), s.Spec(b.id), dir); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("an id that is taken: %v", err)
	}
	b.runScript("true")
}

// testSnapshotFullDisk: no image is left, and the source goes on.
func testSnapshotFullDisk(t *testing.T, s *Subject) {
	t.Helper()
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
	b.runScript("dd if=/dev/urandom of=/home/agent/big bs=1M count=4 2>/dev/null")
	for _, contents := range []engine.Contents{engine.ContentsMemory, engine.ContentsFiles} {
		dir := filepath.Join(place, string(contents))
		if err := b.snapshotter().Snapshot(t.Context(), dir, contents); err == nil {
			t.Errorf("a snapshot of %s fitted", contents)
		}
		if left, err := os.ReadDir(place); err != nil || len(left) > 0 {
			t.Errorf("a snapshot of %s that failed left %v (%v)", contents, left, err)
		}
		b.typeLine(count, "on")
		b.readUntil(count, "on is")
	}
	b.snapshot(engine.ContentsMemory)
}

func (b *box) snapshotter() engine.Snapshotter {
	b.t.Helper()
	source, ok := b.inst.(engine.Snapshotter)
	if !ok {
		b.t.Fatalf("a %T makes no snapshots", b.inst)
	}
	return source
}

// testSnapshotEnding: of what has ended there is no snapshot; of what ends
// meanwhile there is a whole one or none.
func testSnapshotEnding(t *testing.T, s *Subject) {
	t.Helper()
	for i := range 3 {
		b := s.createBox(t, func(spec *engine.Spec) { spec.ID += "-" + string(rune('a'+i)) })
		written := make(chan error, 1)
		dir := filepath.Join(t.TempDir(), "snapshot")
		go func() { written <- b.snapshotter().Snapshot(t.Context(), dir, engine.ContentsMemory) }()
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
		if _, err := b.inst.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		again := b.snapshotter().Snapshot(t.Context(), filepath.Join(t.TempDir(), "again"), engine.ContentsMemory)
		if !errors.Is(again, fault.ErrConflict) && !errors.Is(again, fault.ErrUnavailable) {
			t.Errorf("a snapshot of what has ended: %v", again)
		}
	}
}

// testSnapshotRefused: what is wrong with the question, or the time.
func testSnapshotRefused(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	taken := t.TempDir()
	for name, tt := range map[string]struct {
		dir      string
		contents engine.Contents
		want     error
	}{
		"a place that is taken": {taken, engine.ContentsMemory, fault.ErrConflict},
		"no absolute place":     {"here", engine.ContentsMemory, fault.ErrInvalid},
		"unheard-of contents":   {filepath.Join(taken, "x"), "everything", fault.ErrInvalid},
	} {
		if err := b.snapshotter().Snapshot(t.Context(), tt.dir, tt.contents); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(taken); err != nil {
		t.Errorf("what was there is gone: %v", err)
	}
	image := b.freeze()
	dir := filepath.Join(taken, "frozen")
	if err := b.snapshotter().Snapshot(t.Context(), dir, engine.ContentsMemory); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("a snapshot of what is frozen: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it left an image: %v", err)
	}
	b.thawFrom(image)
	if got := b.runScript("echo on"); got != "on" {
		t.Errorf("after the refusals: %q", got)
	}
}
