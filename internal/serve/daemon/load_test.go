package daemon

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostload"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/quota"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// TestPromisable: the factors are of this host's memory and processors, and none bounds nothing.
func TestPromisable(t *testing.T) {
	t.Parallel()
	memory, err := hostload.ReadMemory(memoryFile)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	for o, want := range map[config.Overcommit]quota.Host{
		{}:                    {OwnerPart: 0.75},
		{Memory: 2, CPU: 1.5}: {MemoryBytes: 2 * memory.Total, CPU: 1.5 * float64(runtime.NumCPU()), OwnerPart: 0.75},
		{Memory: 1e-12}:       {MemoryBytes: 1, OwnerPart: 0.75},
		{CPU: 1, Owner: 0.5}:  {CPU: float64(runtime.NumCPU()), OwnerPart: 0.5},
	} {
		got := promisable(o, log)
		if math.Abs(float64(got.MemoryBytes-want.MemoryBytes)) > 1 || got.CPU != want.CPU || got.OwnerPart != want.OwnerPart {
			t.Errorf("%+v: %+v, want %+v", o, got, want)
		}
	}
}

// TestSizesAreAddedUpBeside: whoever asks does not wait, and is told of no sum before there is
// one; one that is kept is believed for a while.
func TestSizesAreAddedUpBeside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := &sizeOf{dir: dir}
		put("a")
		if n, known := s.lastSum(); known {
			t.Errorf("%d bytes are known at once", n)
		}
		synctest.Wait()
		if n, known := s.lastSum(); n != 1<<20 || !known {
			t.Errorf("%d bytes, known: %t", n, known)
		}
		put("b")
		time.Sleep(sizeKept - time.Second)
		s.lastSum()
		synctest.Wait()
		if n, _ := s.lastSum(); n != 1<<20 {
			t.Errorf("it was added up anew: %d", n)
		}
		time.Sleep(2 * time.Second)
		s.lastSum()
		synctest.Wait()
		if n, _ := s.lastSum(); n != 2<<20 {
			t.Errorf("it was not added up anew: %d", n)
		}
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(sizeKept)
		s.lastSum()
		synctest.Wait()
		if n, known := s.lastSum(); n != 2<<20 || !known {
			t.Errorf("of a directory that can't be looked at: %d, %t", n, known)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		gone := &sizeOf{dir: filepath.Join(dir, "missing")}
		gone.lastSum()
		synctest.Wait()
		if n, known := gone.lastSum(); n != 0 || !known {
			t.Errorf("of a directory that is not there: %d, %t", n, known)
		}
	})
}
