// Package quota counts what the sandboxes of each token have together, and
// refuses what would be more than the token may have.
package quota

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Share is what one sandbox has, or wants, of its token's quota. The zero Token has no quota.
type Share struct {
	Token       string
	CPU         float64
	MemoryBytes int64
	DiskBytes   int64
	LockBytes   int64 // that the daemon keeps of its lockfiles
}

// MaxLockBytes is how much the daemon keeps of the lockfiles of one token's sandboxes, on its disk and, read,
// in its memory. It is apart from the quota of disk: that may be what the token's sandboxes have, to
// the byte.
const MaxLockBytes = 128 << 20

// Book has the shares of all sandboxes. Safe for concurrent use: a check and what
// it admits are one step, so no number of requests at once gets past a quota.
type Book struct {
	mu      sync.Mutex // guards what follows
	host    Host
	shares  map[string]*heldShare
	buckets map[string]*bucket // by token
}

type heldShare struct {
	Share
	rests bool // its sandbox is on disk, without CPU and memory
}

// bucket is a token's rate, how many sandboxes it may begin in a minute: it fills up evenly and
// holds a minute's worth. It has what may be begun at once, as of a time.
type bucket struct {
	level float64
	at    time.Time
}

// Host is how much may be promised together. 0: any amount.
type Host struct {
	CPU         float64
	MemoryBytes int64
	// OwnerPart is the part of it that the sandboxes of one token may be promised together; 0: all.
	// Those of no token, which are the operator's own, have no such bound.
	OwnerPart float64
}

// NewBook makes an empty one.
func NewBook(host Host) *Book {
	return &Book{host: host, shares: map[string]*heldShare{}, buckets: map[string]*bucket{}}
}

// SetHost says anew how much may be promised.
func (b *Book) SetHost(host Host) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.host = host
}

// Promised is what all sandboxes that are not at rest have, of all tokens and of none, and how many
// shares there are.
func (b *Book) Promised() (sum Share, count int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.promised(), len(b.shares)
}

// promised needs mu.
func (b *Book) promised() (sum Share) {
	for _, h := range b.shares {
		if !h.rests {
			sum.CPU += h.CPU
			sum.MemoryBytes += h.MemoryBytes
		}
	}
	return sum
}

// MayPromise tells whether the host may promise so much more: nil, or fault.ErrExhausted, which says
// how much it has promised and is for the operator alone.
func (b *Book) MayPromise(more Share) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mayPromise(more, true)
}

// mayPromise needs mu. A caller that asks for a sandbox, and a guest for which one would be made, is not told what the
// others have together: it would see what they begin and end, to the MiB.
func (b *Book) mayPromise(more Share, operator bool) error {
	has := b.promised()
	const full = "this host is full: its sandboxes are promised %s, with this one they would be %s, and overcommit.%s allows %s; end or pause one, or wait until one ends"
	var what, have, want, most string
	switch {
	case b.host.MemoryBytes > 0 && more.MemoryBytes > b.host.MemoryBytes:
		return fault.Exhausted(0, "the sandbox asks for %s, and overcommit.memory allows this host's sandboxes %s together", formatSize(more.MemoryBytes, "memory"), formatSize(b.host.MemoryBytes, "memory"))
	case b.host.CPU > 0 && more.CPU > b.host.CPU+1e-9:
		return fault.Exhausted(0, "the sandbox asks for %s, and overcommit.cpu allows this host's sandboxes %s together", formatCores(more.CPU), formatCores(b.host.CPU))
	case b.host.MemoryBytes > 0 && has.MemoryBytes+more.MemoryBytes > b.host.MemoryBytes:
		what, have, want, most = "memory", formatSize(has.MemoryBytes, "memory"), formatSize(has.MemoryBytes+more.MemoryBytes, "memory"), formatSize(b.host.MemoryBytes, "memory")
	case b.host.CPU > 0 && has.CPU+more.CPU > b.host.CPU+1e-9: // sums of decimal fractions
		what, have, want, most = "cpu", formatCores(has.CPU), formatCores(has.CPU+more.CPU), formatCores(b.host.CPU)
	default:
		return b.checkOwnerPart(more)
	}
	if !operator {
		return fault.Exhausted(whenFull, "this host is full: overcommit.%s allows no other sandbox now; end or pause one, or wait until one ends", what)
	}
	return fault.Exhausted(whenFull, full, have, want, what, most)
}

// checkOwnerPart refuses what would leave less than a part of the host to the other owners. A token is told of its
// own sandboxes and of the bound. Needs mu.
func (b *Book) checkOwnerPart(more Share) error {
	if more.Token == "" || b.host.OwnerPart <= 0 || b.host.OwnerPart >= 1 {
		return nil
	}
	has, _ := b.usedBy(more.Token)
	mostMemory, mostCPU := int64(b.host.OwnerPart*float64(b.host.MemoryBytes)), b.host.OwnerPart*b.host.CPU
	const sorry = "the token's sandboxes are promised %s, with this one they would be %s, and overcommit.owner leaves one token %s of this host; end or pause one first"
	const alone = "the sandbox asks for %s, and overcommit.owner leaves one token %s of this host"
	switch {
	case b.host.MemoryBytes > 0 && more.MemoryBytes > mostMemory:
		return fault.Exhausted(0, alone, formatSize(more.MemoryBytes, "memory"), formatSize(mostMemory, "memory"))
	case b.host.CPU > 0 && more.CPU > mostCPU+1e-9:
		return fault.Exhausted(0, alone, formatCores(more.CPU), formatCores(mostCPU))
	case b.host.MemoryBytes > 0 && has.MemoryBytes+more.MemoryBytes > mostMemory:
		return fault.Exhausted(0, sorry, formatSize(has.MemoryBytes, "memory"), formatSize(has.MemoryBytes+more.MemoryBytes, "memory"), formatSize(mostMemory, "memory"))
	case b.host.CPU > 0 && has.CPU+more.CPU > mostCPU+1e-9: // sums of decimal fractions
		return fault.Exhausted(0, sorry, formatCores(has.CPU), formatCores(has.CPU+more.CPU), formatCores(mostCPU))
	}
	return nil
}

// whenFull is when to ask a full host again. Nobody knows when a sandbox ends.
const whenFull = 30 * time.Second

// Take gives a sandbox that is to be made its share, or refuses it with fault.ErrExhausted: with a
// time to wait where that is all it takes. A request that is refused for its size costs nothing of
// the rate.
func (b *Book) Take(id string, s Share, q token.Quota) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.mayPromise(s, false); err != nil {
		return err
	}
	if s.Token != "" {
		if err := b.checkQuota(s, q, 1); err != nil {
			return err
		}
		if err := b.beginCreate(s.Token, q.CreatesPerMinute, time.Now()); err != nil {
			return err
		}
	}
	b.shares[id] = &heldShare{Share: s}
	return nil
}

// Put gives a sandbox its share whatever the quota says: it is there already.
func (b *Book) Put(id string, s Share, rests bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shares[id] = &heldShare{Share: s, rests: rests}
}

// Rename gives a share to a sandbox with another id.
func (b *Book) Rename(from, to string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.shares[from]; h != nil && from != to {
		delete(b.shares, from)
		b.shares[to] = h
	}
}

// Rest gives back the CPU and memory of a sandbox that is on disk now.
func (b *Book) Rest(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.shares[id]; h != nil {
		h.rests = true
	}
}

// Wake takes CPU and memory for a sandbox that is to run again, or refuses that
// with fault.ErrExhausted. For one that runs it does nothing.
func (b *Book) Wake(id string, q token.Quota) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.shares[id]
	if h == nil || !h.rests {
		return nil
	}
	more := Share{Token: h.Token, CPU: h.CPU, MemoryBytes: h.MemoryBytes}
	if err := b.mayPromise(more, false); err != nil {
		return err
	}
	if h.Token != "" {
		if err := b.checkQuota(more, q, 0); err != nil {
			return err
		}
	}
	h.rests = false
	return nil
}

// Resumed counts the CPU and memory of a sandbox that goes on, whatever the quota says:
// it has them already.
func (b *Book) Resumed(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.shares[id]; h != nil {
		h.rests = false
	}
}

// Drop gives a share back. Idempotent.
func (b *Book) Drop(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.shares, id)
}

// usedBy is what a token's sandboxes have. Needs mu.
func (b *Book) usedBy(token string) (sum Share, count int) {
	for _, h := range b.shares {
		if h.Token != token {
			continue
		}
		count++
		sum.DiskBytes += h.DiskBytes
		sum.LockBytes += h.LockBytes
		if !h.rests {
			sum.CPU += h.CPU
			sum.MemoryBytes += h.MemoryBytes
		}
	}
	return sum, count
}

// checkQuota refuses what is more than the token's quota. Needs mu.
func (b *Book) checkQuota(s Share, q token.Quota, sandboxes int) error {
	has, count := b.usedBy(s.Token)
	const sorry = "the token's sandboxes have %s, and with this one they would have %s; its quota is %s"
	switch {
	case q.Sandboxes > 0 && sandboxes > 0 && count+sandboxes > q.Sandboxes:
		return fault.Exhausted(0, "the token has %s, and its quota is %d; destroy one first", text.Count(count, "sandbox", "sandboxes"), q.Sandboxes)
	case q.CPU > 0 && has.CPU+s.CPU > q.CPU+1e-9: // sums of decimal fractions
		return fault.Exhausted(0, sorry, formatCores(has.CPU), formatCores(has.CPU+s.CPU), formatCores(q.CPU))
	case q.MemoryBytes > 0 && has.MemoryBytes+s.MemoryBytes > q.MemoryBytes:
		return fault.Exhausted(0, sorry, formatSize(has.MemoryBytes, "memory"), formatSize(has.MemoryBytes+s.MemoryBytes, "memory"), formatSize(q.MemoryBytes, "memory"))
	case q.DiskBytes > 0 && has.DiskBytes+s.DiskBytes > q.DiskBytes:
		return fault.Exhausted(0, sorry, formatSize(has.DiskBytes, "disk"), formatSize(has.DiskBytes+s.DiskBytes, "disk"), formatSize(q.DiskBytes, "disk"))
	case s.LockBytes > 0 && has.LockBytes+s.LockBytes > MaxLockBytes:
		return fault.Exhausted(0, "the token's sandboxes have %s, and with this one they would have %s; a token may have %s; destroy one first",
			formatSize(has.LockBytes, "lockfiles"), formatSize(has.LockBytes+s.LockBytes, "lockfiles"), formatSize(MaxLockBytes, "lockfiles"))
	}
	return nil
}

func formatCores(n float64) string { return fmt.Sprintf("%.4g CPU", n) }

func formatSize(n int64, what string) string { return fmt.Sprintf("%d MiB of %s", n>>20, what) }

// beginCreate needs mu.
func (b *Book) beginCreate(token string, perMinute int, now time.Time) error {
	if perMinute <= 0 {
		delete(b.buckets, token)
		return nil
	}
	most, each := float64(perMinute), time.Minute/time.Duration(perMinute)
	at := b.buckets[token]
	if at == nil {
		at = &bucket{level: most, at: now}
		b.buckets[token] = at
	}
	at.level = min(most, at.level+float64(now.Sub(at.at))/float64(each))
	at.at = now
	if at.level < 1-1e-9 {
		wait := time.Duration(math.Ceil((1 - at.level) * float64(each)))
		return fault.Exhausted(wait, "the token may begin %s a minute, and has; the next in %s", text.Count(perMinute, "sandbox", "sandboxes"), wait.Round(time.Millisecond))
	}
	at.level--
	return nil
}
