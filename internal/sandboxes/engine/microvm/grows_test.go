package microvm

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// TestAFileThatGrowsIsNotReadWhole: another sandbox, which may write to a file that a machine is shown, has it grow
// after it was measured and before it is read into the daemon's memory. The control is what stays as it is.
func TestAFileThatGrowsIsNotReadWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings")
	orFail(t, os.WriteFile(file, []byte("small"), 0o644))
	source, err := hostpath.Resolve(file, nil)
	orFail(t, err)
	defer source.Close()
	owner := engine.Owner{UID: 1000, GID: 1000, HostUID: os.Geteuid(), HostGID: os.Getegid()}
	if data, err := readAs(t.Context(), source, owner); err != nil || string(data) != "small" {
		t.Fatal("the control:", string(data), err)
	}
	var over atomic.Bool
	done := make(chan struct{})
	go func() { // whoever is inside
		defer close(done)
		for !over.Load() {
			for _, size := range []int64{5, mostFile * 2} {
				_ = os.Truncate(file, size)
				for range rand.IntN(10_000) { // it stays so for a while
					_, _ = os.Stat(file)
				}
			}
		}
	}()
	defer func() {
		over.Store(true)
		<-done
	}()
	const reads = 200 // of those that are not refused
	for n := 0; n < reads; {
		data, err := readAs(t.Context(), source, owner)
		if err == nil && len(data) > mostFile {
			t.Fatalf("after %d reads %d bytes are in the daemon's memory; the bound is %d", n, len(data), mostFile)
		}
		if err == nil {
			n++
		}
	}
}

// TestAFolderThatGrowsIsNotCopiedWhole: the same of a folder, whose image lies on the host's disk: it was measured, and
// what is copied is something else.
func TestAFolderThatGrowsIsNotCopiedWhole(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	orFail(t, err)
	folder := filepath.Join(dir, "project")
	orFail(t, os.Mkdir(folder, 0o755))
	orFail(t, os.WriteFile(filepath.Join(folder, "data"), []byte("small"), 0o644))
	p, err := hostpath.Resolve(folder, nil)
	orFail(t, err)
	p.Close()
	spec := engine.Spec{
		Limits: engine.Limits{MemoryBytes: 1 << 30, DiskBytes: 1 << 30}, Owner: engine.Owner{UID: 1000, GID: 1000, HostUID: os.Geteuid(), HostGID: os.Getegid()},
		Mounts: []engine.Mount{{Source: folder, Destination: "/w", ReadOnly: true, Origin: p.ID}},
	}
	l, err := layOut(t.Context(), spec)
	orFail(t, err)
	if err := copyFolder(t.Context(), l.images[0], spec.Owner, filepath.Join(dir, "before")); err != nil {
		t.Fatal("the control:", err)
	}
	const grown = mostImage + 64<<20
	orFail(t, os.Truncate(filepath.Join(folder, "data"), grown))
	if err := measure(t.Context(), mustResolve(t, folder)); err == nil {
		t.Fatal("the control: it is not too large")
	}
	image := filepath.Join(dir, "after")
	err = copyFolder(t.Context(), l.images[0], spec.Owner, image)
	if info, failed := os.Stat(image); err == nil && failed == nil && info.Size() > mostImage {
		t.Errorf("an image of %d bytes is on the host's disk; the bound is %d", info.Size(), mostImage)
	}
}

func mustResolve(t *testing.T, path string) *hostpath.Path {
	t.Helper()
	p, err := hostpath.Resolve(path, nil)
	orFail(t, err)
	t.Cleanup(p.Close)
	return p
}
