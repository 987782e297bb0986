package sandbox_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
)

// shortReserve is a reserve with which the disk of the homes is short, and not all but full: it is half as much again that is to stay free.
func shortReserve(t *testing.T, w *world) int64 {
	t.Helper()
	var on unix.Statfs_t
	if err := unix.Statfs(w.path("."), &on); err != nil {
		t.Fatal(err)
	}
	return int64(on.Bavail) * on.Bsize / 4 * 3
}

// TestADiskThatIsAllButFullEndsHomes: where hardly anything is free, and nobody is known to be at fault, sandboxes with a home end
// one after the other, the newest first. Those without a home, and those with a kernel of their own, go on.
func TestADiskThatIsAllButFullEndsHomes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.daemon(t)
	var ids []string
	for _, name := range []string{"old", "new"} {
		ids = append(ids, d.create(t, sandbox.Request{Home: agenthome.Home{UID: os.Getuid(), Name: name}, HostUID: os.Getuid(), HostGID: os.Getgid(), Keeps: []string{".claude"}}).Info().ID)
	}
	without := d.create(t, sandbox.Request{}).Info().ID
	w.Reserve = 1 << 59 // no disk has as much
	w.OwnKernel = true
	d.next(t)
	looks := d.engine.asked.Load()
	await(t, "it was looked at often", func() bool { return d.engine.asked.Load() >= looks+12 })
	d.wantOnly(t, without, ids[0], ids[1])
	w.OwnKernel = false
	d.next(t)
	await(t, "the newest ends", func() bool { return len(d.List()) == 2 })
	d.wantOnly(t, without, ids[0])
	if why := d.endReason(t, ids[1]); !strings.Contains(why, "it is not seen what has taken the rest") {
		t.Errorf("on record is %q", why)
	}
	await(t, "the other one ends", func() bool { return len(d.List()) == 1 })
	d.wantOnly(t, without)
}
