package cgroup

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// How often Balance looks: while there are shares, and while there are none.
const (
	balanceEvery = 100 * time.Millisecond
	balanceRest  = time.Second
)

// Balance has the shares that use little of the processors go before those that use
// much, until ctx ends. Even weights alone divide the time evenly, but they do not
// make a short step of one share run at once beside the busy processes of another: a
// create is many short steps, and each waited for a time slice. What is low is so
// only beside a share that is not: where all are busy, all are equal.
//
// It needs the kernel's cpu.idle (Linux 5.15); before that it lowers the weight, which
// helps less. One caller at a time.
func (h *Hierarchy) Balance(ctx context.Context) {
	p := h.places[CPU]
	if p.missing != "" {
		return
	}
	b := newBalance(float64(runtime.NumCPU()))
	for ctx.Err() == nil {
		pause := balanceRest
		if used := h.used(); len(used) > 0 {
			for share, low := range b.step(time.Now(), used) {
				lower(p.version, filepath.Join(p.parent, share), low)
			}
			pause = balanceEvery
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// used is what each share used of the processors so far, in nanoseconds, by its
// directory's name. One that goes meanwhile is left out.
func (h *Hierarchy) used() map[string]int64 {
	p, read := h.places[CPU], func(dir string) (int64, error) {
		micros, err := readKey(filepath.Join(dir, "cpu.stat"), "usage_usec")
		return micros * int64(time.Microsecond), err
	}
	if p.version == 1 {
		p = h.places[cpuacct]
		read = func(dir string) (int64, error) { return readNumber(filepath.Join(dir, "cpuacct.usage")) }
	}
	entries, err := os.ReadDir(p.parent)
	if err != nil {
		return nil // it goes with its last group
	}
	used := map[string]int64{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), shareSuffix) {
			continue
		}
		if nanos, err := read(filepath.Join(p.parent, e.Name())); err == nil {
			used[e.Name()] = nanos
		}
	}
	return used
}

// lower puts a share's group behind all others, or beside them again. A group that is
// gone needs neither.
func lower(version int, dir string, low bool) {
	file, value := "cpu.idle", 0
	if low {
		value = 1
	}
	if _, err := os.Stat(filepath.Join(dir, file)); err != nil { // an older kernel
		file, value = "cpu.shares", 1024
		if version == 2 {
			file, value = "cpu.weight", 100
		}
		if low {
			value /= 32
		}
	}
	if path := filepath.Join(dir, file); unix.Access(path, unix.W_OK) == nil {
		_ = writeControl(path, strconv.Itoa(value)) // a division, not a limit
	}
}

// What balance goes by.
const (
	balanceWindow = time.Second // the use of a share is a mean that fades in this time
	balanceMemory = time.Minute // so long a share that is gone still counts
	balanceActive = 0.02        // processors; who uses less wants nothing now
	balanceSlack  = 0.8         // who was low is so until its use falls below this part of the bound
)

// balance knows how much of the processors each share used lately, and which are low.
// It does no input or output. Not safe for concurrent use.
type balance struct {
	cpus   float64
	shares map[string]*load
}

// load is one share's use.
type load struct {
	nanos int64     // the kernel's count at the last look
	at    time.Time // of the last look
	seen  time.Time // when its groups were last there
	use   float64   // processors, a fading mean
	low   bool
}

func newBalance(cpus float64) *balance { return &balance{cpus: cpus, shares: map[string]*load{}} }

// step takes the kernel's counts of now and tells which shares change, to what.
//
// A share is low whose use is above half of its even part, beside one that is not. So
// each is sure of that half at once, and what is beyond it is divided between those
// that are low.
func (b *balance) step(now time.Time, used map[string]int64) (changes map[string]bool) {
	b.count(now, used)
	active := 0
	for _, l := range b.shares {
		if l.use > balanceActive {
			active++
		}
	}
	bound := b.cpus / float64(2*max(2, active))
	above := func(l *load) bool { return l.use > bound || l.low && l.use > balanceSlack*bound }
	light := false
	for _, l := range b.shares {
		light = light || !above(l)
	}
	changes = map[string]bool{}
	for share := range used {
		l := b.shares[share]
		if low := light && above(l); low != l.low {
			l.low, changes[share] = low, low
		}
	}
	return changes
}

// count brings the uses up to date, and forgets what is gone for long.
func (b *balance) count(now time.Time, used map[string]int64) {
	for share, nanos := range used {
		l := b.shares[share]
		if l == nil {
			b.shares[share] = &load{nanos: nanos, at: now, seen: now}
			continue
		}
		passed := now.Sub(l.at)
		if passed <= 0 {
			continue
		}
		grown := nanos - l.nanos
		if grown < 0 { // its groups went, and came again: they count from zero and are not low
			grown, l.low = nanos, false
		}
		l.use += faded(passed) * (float64(grown)/float64(passed) - l.use)
		l.nanos, l.at = nanos, now
	}
	for share, l := range b.shares {
		if _, there := used[share]; there {
			l.seen = now
			continue
		}
		l.use -= faded(now.Sub(l.at)) * l.use
		l.nanos, l.at, l.low = 0, now, false
		if now.Sub(l.seen) > balanceMemory {
			delete(b.shares, share)
		}
	}
}

// faded is the part of a mean that is gone after a time.
func faded(passed time.Duration) float64 {
	return min(1, float64(passed)/float64(balanceWindow))
}
