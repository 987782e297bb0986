package backend

import (
	"context"
	"io"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// Bounds of the bytes of requests and answers that are held at one time, and of how
// fast they come.
const (
	RoomEach = 16 << 20 // for one token
	RoomAll  = 64 << 20 // for all
	// RoomSure is what each token may have although all others have RoomAll, up to RoomMost in all:
	// no few of them keep another from asking.
	RoomSure = 2 << 20
	RoomMost = 256 << 20
	RoomPace = 4 << 20 // for one token, a second, after the first RoomEach
	maxPaced = 1_000   // tokens whose pace is remembered, before those that are at rest are forgotten
)

// Room is the memory that the daemon has for what clients send and are sent whole: a
// request that is read into memory takes its bytes as they come, and gives them back
// when it is over. So who sends much and then nothing holds what its token may, and no
// more. A stream takes none. Safe for concurrent use.
type Room struct {
	mu   sync.Mutex // guards what follows
	used map[string]int64
	all  int64
	pace map[string]*rate.Limiter // of those who have sent something
}

// NewRoom makes an empty one.
func NewRoom() *Room { return &Room{used: map[string]int64{}, pace: map[string]*rate.Limiter{}} }

// roomKey is where a request's context has its share of the room.
type roomKey struct{}

// share is what one request has taken.
type share struct {
	room  *Room
	owner string

	mu       sync.Mutex // guards what follows; taken before the room's
	taken    int64
	buffered int64 // of taken: for what the server may keep of the body when the handler has returned
	promised bool  // its answer is not refused
	left     bool
}

// Visitors is whose room visitors of an owner's published ports take: there may be very many of
// them, who must not keep the owner itself from asking.
func Visitors(owner string) string { return "visitors of " + owner }

// Enter has a request take from an owner's room: a token, or a sandbox that belongs to
// none. leave gives back what was taken, and has the request take no more; but what Buffered took only when the server
// keeps nothing of the request any more.
func (r *Room) Enter(ctx context.Context, owner string) (within context.Context, leave func()) {
	s := &share{room: r, owner: owner}
	over := httphead.WhenOver(ctx, s.giveRest)
	return context.WithValue(ctx, roomKey{}, s), func() {
		s.leaveBuffered()
		over()
	}
}

// Take takes n bytes for the request of ctx until it is over; fault.ErrExhausted if
// there is no room, or n is negative. A request that has not entered a room takes none: it is of the
// installation's own user.
func Take(ctx context.Context, n int) error {
	s, ok := ctx.Value(roomKey{}).(*share)
	if !ok {
		return nil
	}
	return s.takeBytes(int64(n))
}

// Account is the room of the request of ctx for what is counted elsewhere; nil: it has entered
// none. It gives back no more than it has taken.
func Account(ctx context.Context) httphead.Account {
	if s, ok := ctx.Value(roomKey{}).(*share); ok {
		return account{s}
	}
	return nil
}

// account implements httphead.Account.
type account struct{ of *share }

// Take takes bytes; false: there is no room.
func (a account) Take(bytes int64) bool { return a.of.takeBytes(bytes) == nil }

// Give gives some back.
func (a account) Give(bytes int64) { a.of.giveBytes(bytes) }

// Give gives back n bytes of what the request of ctx has taken.
func Give(ctx context.Context, n int) {
	if s, ok := ctx.Value(roomKey{}).(*share); ok {
		s.giveBytes(int64(n))
	}
}

// Lend is Take of bytes that may be needed no more before the request is over: giveBack, which is called once, gives them back.
func Lend(ctx context.Context, n int) (giveBack func(), err error) {
	if err := Take(ctx, n); err != nil {
		return nil, err
	}
	return func() { Give(ctx, n) }, nil
}

func (s *share) giveBytes(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left { // what is left of it is for the server, until that has done with the request
		return
	}
	s.giveLocked(max(min(n, s.taken-s.buffered), 0))
}

// giveBytes gives back what an owner had.
func (r *Room) giveBytes(owner string, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all -= n
	if r.used[owner] -= n; r.used[owner] == 0 {
		delete(r.used, owner)
	}
}

func (s *share) takeBytes(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeLocked(n)
}

// buffer is take for what the server keeps of the body.
func (s *share) buffer(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.takeLocked(n); err != nil {
		return err
	}
	s.buffered += n
	return nil
}

// takeLocked needs mu.
func (s *share) takeLocked(n int64) error {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := n
	if asked < 0 || asked > RoomEach { // a sum that ran over, which would give room, is more than there is
		asked = RoomEach + 1
	}
	used := r.used[s.owner] + asked
	switch sure := used <= RoomSure && r.all+asked <= RoomMost; {
	case s.left:
		return fault.New(fault.ErrExhausted, "the request is over")
	case s.taken+asked > RoomEach: // whatever else ends, so that asking again does not help
		return fault.New(fault.ErrExhausted, "the request alone holds more than %d MiB, which is all that a token's requests may hold; send less, or ask for less", RoomEach>>20)
	case used > RoomEach:
		return fault.Exhausted(time.Second, "the requests of this token that are under way hold more than %d MiB; send less, or ask for less, at one time", RoomEach>>20)
	case r.all+asked > RoomAll && !sure:
		return fault.Exhausted(time.Second, "the requests that are under way hold more than %d MiB; try again", RoomAll>>20)
	}
	r.used[s.owner] += n
	r.all += n
	s.taken += n
	return nil
}

// Release gives back what the request of ctx has taken so far: it goes on, and holds
// none of that any more. What Buffered took stays: the server may have it still.
func Release(ctx context.Context) {
	if s, ok := ctx.Value(roomKey{}).(*share); ok {
		s.releaseShare()
	}
}

func (s *share) releaseShare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveLocked(s.taken - s.buffered)
}

// drained gives back what Buffered took: the server has nothing more of the body.
func (s *share) drained() {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.buffered
	s.buffered = 0
	s.giveLocked(n)
}

// giveLocked needs mu.
func (s *share) giveLocked(n int64) {
	s.taken -= n
	s.room.giveBytes(s.owner, n)
}

// leaveBuffered gives back all but what is buffered and has the request take no more, in one step: nobody would give back what
// was taken between the two.
func (s *share) leaveBuffered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveLocked(s.taken - s.buffered)
	s.left = true
}

// giveRest gives back what is left.
func (s *share) giveRest() { s.drained() }

// paceOf is how fast an owner's requests may be read: each byte is work, and the
// processor is everybody's.
func (r *Room) paceOf(owner string) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.pace[owner]; l != nil {
		return l
	}
	if len(r.pace) >= maxPaced {
		maps.DeleteFunc(r.pace, func(_ string, l *rate.Limiter) bool { return l.Tokens() >= RoomEach })
	}
	l := rate.NewLimiter(RoomPace, RoomEach)
	r.pace[owner] = l
	return l
}

// awaitRoom waits until the request of ctx may have read n bytes more.
func awaitRoom(ctx context.Context, n int) error {
	s, ok := ctx.Value(roomKey{}).(*share)
	if !ok {
		return nil
	}
	pace := s.room.paceOf(s.owner)
	for ; n > 0; n -= RoomEach {
		if err := pace.WaitN(ctx, min(n, RoomEach)); err != nil {
			return err
		}
	}
	return nil
}

// Held is a body whose bytes take room as they come, at the pace of their owner; a
// read for which there is no room fails with that.
func Held(ctx context.Context, body io.Reader) io.Reader { return &heldRoom{ctx, body} }

type heldRoom struct {
	ctx  context.Context //nolint:containedctx // of the one request whose body it is
	body io.Reader
}

// Read implements io.Reader.
func (h *heldRoom) Read(p []byte) (int, error) {
	n, err := h.body.Read(p)
	if taken := Take(h.ctx, n); taken != nil {
		return 0, taken
	}
	if late := awaitRoom(h.ctx, n); late != nil {
		return 0, late
	}
	return n, err
}
