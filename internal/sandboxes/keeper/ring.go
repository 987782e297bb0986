package keeper

import (
	"context"
	"io"
	"sort"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// The sizes of a ring.
const (
	defaultRing = 1 << 20
	minRing     = 4 << 10
	maxRing     = 64 << 20
	firstRing   = 4 << 10 // what a ring allocates at first; it doubles up to its size
	segmentCost = 16      // a ring of n bytes remembers at most n/segmentCost changes of stream
	segmentSize = 16      // bytes of memory of one such change
	plainCost   = 256     // of them one has n/plainCost without more memory
)

// ring keeps the newest output of a command, stdout and stderr in the order in
// which they came. Offsets count all bytes ever appended. While a reader is
// attached, nothing that it has not read is dropped and append waits instead;
// with none, the oldest bytes make room.
type ring struct {
	mu       sync.Mutex // guards everything below
	changed  *sync.Cond
	share    *outputShare // what the memory is taken of; nil: it is not counted
	taken    int64        // bytes of share
	retired  bool         // forgotten: when the last reader has gone, all of share is given back
	max      int64
	limit    int64  // what may be kept now: max, or less if the sandbox has no more memory for output
	choppy   bool   // has memory for n/segmentCost changes of stream
	buf      []byte // byte at offset o is buf[o%len(buf)]
	start    int64  // offset of the oldest byte kept
	end      int64  // offset after the newest
	segments []segment
	cursors  map[*cursor]struct{}
	loose    bool // the source is gone: never wait for readers
	held     bool // the first reader is awaited: drop nothing until it comes
	closed   bool // nothing more is appended
	closedAt time.Time
	marks    []mark // of passages; what is older than the first has no time
}

// segment is a run of bytes of one stream, up to the next segment.
type segment struct {
	start int64
	kind  channel.FrameType
}

// cursor is a reader's place in a ring.
type cursor struct {
	r      *ring
	offset int64 // guarded by r.mu
}

// chunk is what a cursor read: a gap, or bytes of one stream.
type chunk struct {
	gap  int64
	kind channel.FrameType
	n    int
}

func newRing(size int64, share *outputShare) *ring {
	if size <= 0 {
		size = defaultRing
	}
	size = min(max(size, minRing), maxRing)
	r := &ring{share: share, max: size, limit: size, cursors: map[*cursor]struct{}{}}
	r.changed = sync.NewCond(&r.mu)
	return r
}

// append adds output, waiting for the slowest attached reader when full.
func (r *ring) append(kind channel.FrameType, p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(p) > 0 && !r.closed {
		r.allowChanges(kind)
		r.growBuffer(kind, int64(len(p)))
		n := min(r.roomFor(kind), int64(len(p)))
		if n == 0 {
			r.changed.Wait()
			continue
		}
		n = min(n, r.passageRoom(time.Now()))
		r.putBytes(kind, p[:n])
		p = p[n:]
		r.changed.Broadcast()
	}
}

// roomFor is how many bytes of a stream can be put now. Needs mu.
func (r *ring) roomFor(kind channel.FrameType) int64 {
	if r.loose || (len(r.cursors) == 0 && !r.held) {
		return r.limit
	}
	floor := r.end
	if r.held {
		floor = r.start
	}
	for c := range r.cursors {
		floor = min(floor, c.offset)
	}
	if r.crowded(kind) && len(r.segments) > 1 && floor < r.segments[1].start {
		return 0
	}
	return max(r.limit-(r.end-max(floor, r.start)), 0)
}

// crowded tells whether a byte of a stream needs a segment more than may be.
func (r *ring) crowded(kind channel.FrameType) bool {
	last := len(r.segments) - 1
	return last >= 0 && r.segments[last].kind != kind && int64(len(r.segments)) >= max(int64(len(r.buf)), firstRing)/r.changeCost()
}

// changeCost is for how many bytes one change of stream is remembered. Needs mu.
func (r *ring) changeCost() int64 {
	if r.choppy {
		return segmentCost
	}
	return plainCost
}

// allowChanges has the ring remember more changes of stream if the next bytes take one too many, as far
// as the sandbox has memory for output. Needs mu.
func (r *ring) allowChanges(kind channel.FrameType) {
	if r.choppy || !r.crowded(kind) {
		return
	}
	r.choppy = true
	r.choppy = r.charge(r.costOf(int64(len(r.buf))))
}

// putBytes appends at most limit bytes, dropping the oldest. Needs mu.
func (r *ring) putBytes(kind channel.FrameType, p []byte) {
	if r.crowded(kind) && len(r.segments) > 1 {
		r.dropBefore(r.segments[1].start)
	}
	r.dropBefore(r.end + int64(len(p)) - r.limit)
	if last := len(r.segments) - 1; last < 0 || r.segments[last].kind != kind {
		r.segments = append(r.segments, segment{start: r.end, kind: kind})
	}
	at := r.end % int64(len(r.buf))
	n := copy(r.buf[at:], p)
	copy(r.buf, p[n:])
	r.end += int64(len(p))
}

// dropBefore forgets what lies before offset. Needs mu.
func (r *ring) dropBefore(offset int64) {
	if offset <= r.start {
		return
	}
	r.start = offset
	keep := sort.Search(len(r.segments), func(i int) bool { return r.segments[i].start > offset }) - 1
	if keep > 0 { // the rest stays where it is: each drop may be for one byte
		r.segments = r.segments[keep:]
	}
}

// growBuffer makes the buffer hold n bytes more, with as many changes of stream as have come, up to max and as
// far as the sandbox has memory for output; limit is what it holds then. The first bytes are always to be
// had. Needs mu.
func (r *ring) growBuffer(kind channel.FrameType, n int64) {
	want, has := r.end-r.start+n, int64(len(r.buf))
	if r.choppy && r.crowded(kind) {
		want = max(want, 2*has)
	}
	want = min(want, r.max)
	size := max(has, firstRing)
	for size < want {
		size *= 2
	}
	size = min(size, r.max)
	for size > max(has, firstRing) && !r.charge(r.costOf(size)) {
		size = max(size/2, has, firstRing)
	}
	if size > has {
		r.resize(size)
	}
	if r.limit = r.max; size < want {
		r.limit = size
	}
}

func (r *ring) resize(size int64) {
	buf := make([]byte, size)
	for o := r.start; o < r.end; {
		from := r.buf[o%int64(len(r.buf)):]
		from = from[:min(int64(len(from)), r.end-o)]
		o += int64(copy(buf[o%size:], from))
	}
	r.buf = buf
}

// loosen ends all waiting for readers: they meet gaps from now on.
func (r *ring) loosen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loose = true
	r.changed.Broadcast()
}

// closeRing tells readers that nothing more comes, and gives spare memory back.
func (r *ring) closeRing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed, r.closedAt = true, time.Now()
	if kept := r.end - r.start; kept < int64(len(r.buf)) {
		r.resize(max(kept, 1))
	}
	r.tidyMarks()
	r.refund()
	r.changed.Broadcast()
}

// memoryHeld is how much memory the output takes.
func (r *ring) memoryHeld() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.buf))
}

// endOffset is the offset after the newest byte.
func (r *ring) endOffset() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end
}

// placeReader puts a reader at an offset, or at one of those that have a name.
func (r *ring) placeReader(offset int64) (*cursor, error) {
	switch offset {
	case Tail:
		return r.tailReader(), nil
	case FromNow:
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.joinReader(r.end), nil
	default:
		return r.attach(offset)
	}
}

// attach places a reader at an offset; what is no longer kept there will be a
// gap. The reader must be detached.
func (r *ring) attach(offset int64) (*cursor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if offset < 0 || offset > r.end {
		return nil, fault.Invalid("offset %d is not within the %d bytes of output so far", offset, r.end)
	}
	return r.joinReader(offset), nil
}

// joinReader adds a reader. Needs mu.
func (r *ring) joinReader(offset int64) *cursor {
	c := &cursor{r: r, offset: offset}
	r.cursors[c] = struct{}{}
	r.held = false
	r.changed.Broadcast()
	return c
}

// holdOutput keeps all output until a reader attaches or release is called.
func (r *ring) holdOutput() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = true
}

// releaseOutput ends the waiting for a first reader.
func (r *ring) releaseOutput() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = false
	r.changed.Broadcast()
}

// tailReader places a reader behind the last byte, wherever that will be: it reads
// nothing, holds nothing back, and next tells when the output has ended.
func (r *ring) tailReader() *cursor { return &cursor{r: r, offset: Tail} }

func (c *cursor) detach() {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	delete(c.r.cursors, c)
	c.r.refund()
	c.r.changed.Broadcast()
}

// nextChunk waits for output and copies some into p: bytes of one stream, or a gap
// and no bytes. io.EOF when everything was read and nothing more comes.
func (c *cursor) nextChunk(ctx context.Context, p []byte) (chunk, error) {
	r := c.r
	stop := safego.When(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for c.offset >= r.end && !r.closed && ctx.Err() == nil {
		r.changed.Wait()
	}
	if err := ctx.Err(); err != nil {
		return chunk{}, err
	}
	if c.offset >= r.end {
		return chunk{}, io.EOF
	}
	if gap := r.start - c.offset; gap > 0 {
		c.offset = r.start
		return chunk{gap: gap}, nil
	}
	return c.takeChunk(p), nil
}

// takeChunk copies what is there of the segment at the cursor. Needs r.mu.
func (c *cursor) takeChunk(p []byte) chunk {
	r := c.r
	i := sort.Search(len(r.segments), func(i int) bool { return r.segments[i].start > c.offset }) - 1
	stop := r.end
	if i+1 < len(r.segments) {
		stop = r.segments[i+1].start
	}
	p = p[:min(int64(len(p)), stop-c.offset)]
	at := c.offset % int64(len(r.buf))
	n := copy(p, r.buf[at:])
	n += copy(p[n:], r.buf)
	c.offset += int64(n)
	r.changed.Broadcast()
	return chunk{kind: r.segments[i].kind, n: n}
}
