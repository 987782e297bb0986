package cgroup

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// How often a Balance looks: while there are shares, and while there are none.
const (
	balanceEvery = 100 * time.Millisecond
	balanceRest  = time.Second
)

// Balance divides the processors between the shares of a hierarchy by when each may
// go first. Even weights alone divide the time evenly, but they do not make a short
// step of one share run at once beside the busy processes of another: a create is many
// short steps, and each waited for a time slice.
//
// A share is *low* when others go before it. It is so while it uses more than nearly
// all of its even part beside one that does not, and while another *hurries*. Where
// all are busy, all are equal. Within a share the same holds among its groups, but that none
// hurries: so a command of a sandbox that rests does not wait behind the owner's own busy ones.
//
// It needs the kernel's cpu.idle (Linux 5.15); before that it lowers the weight, which
// helps less. Without the controller it does nothing. Safe for concurrent use.
type Balance struct {
	h *Hierarchy

	mu     sync.Mutex // guards what follows, and is held over the writes
	loads  loads
	hurry  map[string]*hurry // by the share's directory
	within within            // of each share
	lowers map[string]bool   // what the kernel was told, by the directory below the parent
}

// NewBalance makes the balance of a hierarchy. There is one for each parent.
func NewBalance(h *Hierarchy) *Balance {
	return &Balance{h: h, loads: loads{}, hurry: map[string]*hurry{}, within: within{}, lowers: map[string]bool{}}
}

// Run keeps the balance until ctx ends.
func (b *Balance) Run(ctx context.Context) {
	if b.h.places[CPU].missing != "" {
		return
	}
	for ctx.Err() == nil {
		pause := balanceRest
		if b.lookAtShares() {
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

// lookAtShares brings everything up to date; false: there are no shares.
func (b *Balance) lookAtShares() bool {
	used := b.h.usedByShares()
	var inner map[string]map[string]int64
	if b.within.claimLook(time.Now()) {
		inner = b.h.usedWithin(used)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loads.countUse(time.Now(), used)
	b.settleShares(time.Now())
	if inner != nil {
		b.settleWithin(time.Now(), inner)
	}
	return len(used) > 0
}

// Hurry has a share go before all others that don't hurry, until done is called: for the short time
// in which somebody waits for a sandbox. A group that hurries all the time has no more of it than a
// part of the time.
func (b *Balance) Hurry(share string) (done func()) {
	if b.h.places[CPU].missing != "" {
		return func() {}
	}
	name := shareDir(share)
	b.change(name, +1)
	return sync.OnceFunc(func() { b.change(name, -1) })
}

func (b *Balance) change(name string, by int) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.hurry[name]
	if one == nil {
		one = &hurry{at: now, credit: hurryMost}
		b.hurry[name] = one
	}
	one.spendCredit(now)
	one.count += by
	b.settleShares(now)
}

// settleShares tells the kernel who is low now. Needs b.mu.
func (b *Balance) settleShares(now time.Time) {
	hurries := false
	for name, one := range b.hurry {
		one.spendCredit(now)
		hurries = hurries || one.goesFirst()
		if one.count == 0 && one.credit == hurryMost {
			delete(b.hurry, name)
		}
	}
	low := b.loads.lowShares()
	for name, there := range b.loads.sharesThere() {
		one := b.hurry[name]
		want := low[name]
		if hurries {
			want = one == nil || !one.goesFirst()
		}
		b.tellGroup(name, there, want)
	}
}

// tellGroup tells the kernel of one group whether it is low, if it was told otherwise. Needs b.mu.
func (b *Balance) tellGroup(name string, there, want bool) {
	if !there {
		delete(b.lowers, name) // its groups are made anew, and are not low then
		return
	}
	if was, told := b.lowers[name]; !told || want != was { // an earlier daemon may have left it low
		b.lowers[name] = want
		p := b.h.places[CPU]
		lowerGroup(p.version, filepath.Join(p.parent, name), want)
	}
}

// How much a share may hurry.
const (
	hurryMost = time.Second // in one go
	hurryPart = 0.1         // of all time
)

// hurry is a share's.
type hurry struct {
	count  int // those that wait now
	at     time.Time
	credit time.Duration
}

// goesFirst tells whether the share goes first.
func (o *hurry) goesFirst() bool { return o.count > 0 && o.credit > 0 }

// spendCredit brings the credit up to date.
func (o *hurry) spendCredit(now time.Time) {
	passed := max(0, now.Sub(o.at))
	o.credit += time.Duration(hurryPart * float64(passed))
	if o.count > 0 {
		o.credit -= passed
	}
	o.credit, o.at = max(0, min(hurryMost, o.credit)), now
}

// usedByShares is what each share used of the processors so far, in nanoseconds, by its
// directory's name. One that goes meanwhile is left out.
func (h *Hierarchy) usedByShares() map[string]int64 {
	return h.usedBelow("", func(name string) bool { return strings.HasSuffix(name, shareSuffix) })
}

// usedBelow is the same of the groups in a directory below the parent that are meant.
func (h *Hierarchy) usedBelow(rel string, meant func(name string) bool) map[string]int64 {
	p, read := h.places[CPU], func(dir string) (int64, error) {
		micros, err := readKey(filepath.Join(dir, "cpu.stat"), "usage_usec")
		return micros * int64(time.Microsecond), err
	}
	if p.version == 1 {
		p = h.places[cpuacct]
		read = func(dir string) (int64, error) { return readNumber(filepath.Join(dir, "cpuacct.usage")) }
	}
	dir := filepath.Join(p.parent, rel)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // it goes with its last group
	}
	used := map[string]int64{}
	for _, e := range entries {
		if !e.IsDir() || !meant(e.Name()) {
			continue
		}
		if nanos, err := read(filepath.Join(dir, e.Name())); err == nil {
			used[e.Name()] = nanos
		}
	}
	return used
}

// lowerGroup puts a share's group behind all others, or beside them again. A group that is
// gone needs neither.
func lowerGroup(version int, dir string, low bool) {
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

// The numbers that a Balance goes by.
const (
	balanceWindow = time.Second // the use of a share is a mean that fades in this time
	balanceMemory = time.Minute // so long a share that is gone still counts
	balanceActive = 0.02        // processors; who uses less wants nothing now
	balancePart   = 0.9         // of its even part a share may use and go first
	balanceLeast  = 0.1         // processors; who uses less is never low
	balanceSlack  = 0.8         // who was low is so until its use falls below this part of the bound
)

// loads know how much of the processors each share used lately. They do no input or
// output. Not safe for concurrent use.
type loads map[string]*load

// load is one share's use.
type load struct {
	nanos int64     // the kernel's count at the last look
	at    time.Time // of the last look
	seen  time.Time // when its groups were last there
	gone  bool
	use   float64 // processors, a fading mean
	low   bool
}

// lowShares tells which shares use so much that others go first.
//
// So is one whose use is above nearly all of its even part of what all of them use,
// beside one whose is not. Each is sure of that much at once. Those that want more are equals: at their even
// parts all are above, and none is low.
func (all loads) lowShares() map[string]bool {
	active, sum := 0, 0.0
	for _, l := range all {
		sum += l.use
		if l.use > balanceActive {
			active++
		}
	}
	bound := max(balanceLeast, balancePart*sum/float64(max(2, active)))
	above := func(l *load) bool { return l.use > bound || l.low && l.use > balanceSlack*bound }
	light := false
	for _, l := range all {
		light = light || !above(l)
	}
	low := map[string]bool{}
	for share, l := range all {
		l.low = light && above(l) && !l.gone
		low[share] = l.low
	}
	return low
}

// sharesThere tells of each share whether its groups are there.
func (all loads) sharesThere() map[string]bool {
	there := map[string]bool{}
	for share, l := range all {
		there[share] = !l.gone
	}
	return there
}

// countUse takes the kernel's counts of now, and forgets what is gone for long.
func (all loads) countUse(now time.Time, used map[string]int64) {
	for share, nanos := range used {
		l := all[share]
		if l == nil {
			all[share] = &load{nanos: nanos, at: now, seen: now}
			continue
		}
		l.seen, l.gone = now, false
		passed := now.Sub(l.at)
		if passed <= 0 {
			continue
		}
		grown := nanos - l.nanos
		if grown < 0 { // its groups went, and came again: they count from zero
			grown = nanos
		}
		l.use += fadedPart(passed) * (float64(grown)/float64(passed) - l.use)
		l.nanos, l.at = nanos, now
	}
	for share, l := range all {
		if _, there := used[share]; there {
			continue
		}
		l.use -= fadedPart(now.Sub(l.at)) * l.use
		l.nanos, l.at, l.gone = 0, now, true
		if now.Sub(l.seen) > balanceMemory {
			delete(all, share)
		}
	}
}

// fadedPart is the part of a mean that is gone after a time.
func fadedPart(passed time.Duration) float64 {
	return min(1, float64(passed)/float64(balanceWindow))
}
