package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostload"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/quota"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

const (
	memoryFile  = "/proc/meminfo"
	pressureDir = "/proc/pressure"
)

// promisable is how much may be promised on this host. Where its memory is not known nothing could
// be compared with a factor, so that a sandbox of any size is refused.
func promisable(o config.Overcommit, log *slog.Logger) quota.Host {
	host := quota.Host{OwnerPart: o.OwnerPart()}
	if o.CPU > 0 {
		host.CPU = o.CPU * float64(runtime.NumCPU())
	}
	if o.Memory > 0 {
		memory, err := hostload.ReadMemory(memoryFile)
		if err != nil {
			log.Error("overcommit.memory is set, and the host's memory is not known: no sandbox is made", "err", err)
		}
		host.MemoryBytes = max(1, int64(o.Memory*float64(memory.Total)))
	}
	return host
}

// watchLoad returns the function that looks up the host's load at each scrape.
func watchLoad(opts Options, sandboxes *sandbox.Manager) func() telemetry.Load {
	p := opts.Paths
	dirs := map[string]*sizeOf{}
	for name, dir := range map[string]string{"snapshots": p.Snapshots(), "cache": p.Cache(), "frozen": p.Frozen(), "templates": p.Templates()} {
		dirs[name] = &sizeOf{dir: dir}
	}
	var told sync.Once // a scrape comes four times a minute
	return func() telemetry.Load {
		load := sandboxes.Load()
		out := telemetry.Load{
			PromisedCPU: load.CPU, PromisedMemory: load.MemoryBytes, CPU: runtime.NumCPU(), Waiting: load.Waiting, Bytes: map[string]int64{}, Pressure: map[string]telemetry.Pressure{},
		}
		if memory, err := hostload.ReadMemory(memoryFile); err == nil {
			out.Memory, out.MemoryAvailable = memory.Total, memory.Available
		}
		pressures, err := hostload.ReadPressure(pressureDir)
		if err != nil {
			told.Do(func() { opts.Log.Warn("the host's pressure can't be read; this is said once", "err", err) })
		}
		for resource, p := range pressures {
			out.Pressure[resource] = telemetry.Pressure(p)
		}
		for name, size := range dirs {
			if bytes, known := size.lastSum(); known {
				out.Bytes[name] = bytes
			}
		}
		return out
	}
}

// sizeKept is how long the size of a directory is believed.
const sizeKept = time.Minute

// sizeOf is how much the files of a directory have, in bytes. It is added up beside whoever
// asks: a cache of a million files takes longer than a scrape may.
type sizeOf struct {
	dir string

	mu     sync.Mutex // guards what follows
	last   int64
	known  bool
	adding bool
	taken  time.Time
}

// lastSum is the last sum; false: none was made yet.
func (s *sizeOf) lastSum() (total int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.adding && (!s.known || time.Since(s.taken) >= sizeKept) {
		s.adding = true
		safego.Go(s.sumAgain)
	}
	return s.last, s.known
}

func (s *sizeOf) sumAgain() {
	var total int64
	added := false
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.adding, s.taken = false, time.Now()
		if added {
			s.last, s.known = total, true
		}
	}()
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		added = errors.Is(err, fs.ErrNotExist) // it is not there yet; else nothing is known anew
		return
	}
	defer func() { _ = root.Close() }()
	// Files that are renamed or removed meanwhile count the next time, and those behind a bound not at
	// all: the gateway writes the cache.
	_ = treewalk.WalkRoot(context.Background(), root, addedUp(), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // as above
		}
		if info, err := e.Info(); err == nil {
			total += onDisk(info)
		}
		return nil
	})
	added = true
}

// addedUp bounds how much of a directory is looked at.
func addedUp() treewalk.Bounds {
	b := treewalk.Usual()
	b.Entries *= 10
	b.Names *= 10 // they are counted, and not kept
	return b
}

// onDisk is how much of the disk a file takes: images have holes.
func onDisk(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
