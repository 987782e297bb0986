package sandbox

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// The bounds of waiting for a create, and the reserves that the host must have for one.
const (
	createTimeout    = 30 * time.Second // for one's turn
	createLine       = 500              // requests of one owner that wait for a turn
	spareDescriptors = 128              // of this process
	defaultReserve   = 256 << 20        // bytes
)

// gate lets in as many creates at one time as the host's processors are good for, of each owner its
// share, and none when the host is short of what every one needs. A sandbox that is let in may
// still be refused for the same reason later: that is then an ordinary failure.
type gate struct {
	turns   *fairqueue.Shares
	dir     string // on the file system that sandboxes' files are on
	reserve int64  // bytes that stay free there
}

func newGate(dir string, reserve int64) *gate {
	return &gate{turns: fairqueue.New(fairqueue.Fair(2*runtime.NumCPU(), createLine)), dir: dir, reserve: reserveOf(reserve)}
}

// reserveOf is a reserve as it is configured, or the default one.
func reserveOf(configured int64) int64 {
	if configured <= 0 {
		return defaultReserve
	}
	return configured
}

// enterGate waits for a turn of an owner; leave gives it back. fault.ErrExhausted says
// what there is too little of.
func (g *gate) enterGate(ctx context.Context, owner string) (leave func(), err error) {
	bounded, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	_, leave, err = g.turns.Take(fairqueue.For(bounded, owner))
	switch {
	case errors.Is(err, fairqueue.ErrCrowded):
		return nil, fault.Exhausted(time.Second, "%d requests of the same owner wait already for their turn to make a sandbox", createLine)
	case ctx.Err() != nil && err != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fault.Exhausted(time.Second, "there was no turn to make a sandbox in %s: %d can be made at one time, and %d of one owner",
			createTimeout, g.turns.Limits().All, g.turns.Limits().Each)
	}
	if err := g.checkRoom(); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

func (g *gate) checkRoom() error {
	var on unix.Statfs_t
	if err := unix.Statfs(g.dir, &on); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the free space of the daemon's disk is not known")
	}
	if free := int64(on.Bavail) * on.Bsize; free < g.reserve {
		return fault.Exhausted(30*time.Second, "the daemon's disk has less free space than must stay free (%d MiB); end or remove something, or have its host's operator free some: cofferdam doctor there says which disk it is", g.reserve>>20)
	}
	used, most, err := descriptors()
	if err != nil {
		return fault.Wrap(fault.ErrExhausted, err, "how many files are open is not known")
	}
	if used+spareDescriptors > most {
		return fault.Exhausted(5*time.Second, "the daemon has almost as many files open as it may (%d); nothing new is begun with fewer than %d to spare", most, spareDescriptors)
	}
	return nil
}

// descriptors are how many this process has and may have.
func descriptors() (used, most int, err error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, 0, err
	}
	most = int(min(limit.Cur, 1<<30))
	info, err := os.Stat("/proc/self/fd")
	if err != nil {
		return 0, 0, err
	}
	if info.Size() > 0 { // a newer kernel counts them itself
		return int(info.Size()), most, nil
	}
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, 0, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	return len(names), most, err
}
