package backend_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// TestRoom: what an owner's requests hold is bounded, what all hold is, and what is
// over is given back.
func TestRoom(t *testing.T) {
	t.Parallel()
	room := backend.NewRoom()
	one, leaveOne := room.Enter(t.Context(), "ann")
	two, leaveTwo := room.Enter(t.Context(), "ann")
	if err := backend.Take(one, backend.RoomEach); err != nil {
		t.Fatal(err)
	}
	if err := backend.Take(two, 1); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("more than a token's room: %v", err)
	}
	leaveOne()
	leaveOne() // gives back nothing twice
	if err := backend.Take(two, backend.RoomEach); err != nil {
		t.Errorf("after the first has left: %v", err)
	}
	leaveTwo()
	var leave []func()
	for name := byte('a'); len(leave) < backend.RoomAll/backend.RoomEach; name++ {
		ctx, l := room.Enter(t.Context(), string(name))
		leave = append(leave, l)
		if err := backend.Take(ctx, backend.RoomEach); err != nil {
			t.Fatal(err)
		}
	}
	late, leaveLate := room.Enter(t.Context(), "late")
	defer leaveLate()
	if err := backend.Take(late, backend.RoomSure); err != nil {
		t.Errorf("what is sure, beside some that have all: %v", err)
	}
	if err := backend.Take(late, 1); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("more than there is for all: %v", err)
	}
	backend.Give(late, backend.RoomSure)
	leave[0]()
	if err := backend.Take(late, backend.RoomEach); err != nil {
		t.Errorf("after one has left: %v", err)
	}
	backend.Give(late, 2*backend.RoomEach) // gives back no more than was taken
	body := backend.Held(late, bytes.NewReader(make([]byte, backend.RoomEach)))
	if n, err := io.Copy(io.Discard, body); err != nil || n != backend.RoomEach {
		t.Errorf("a body that fits: %d, %v", n, err)
	}
	if _, err := backend.Held(late, bytes.NewReader([]byte("x"))).Read(make([]byte, 1)); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("a byte too much: %v", err)
	}
	if err := backend.Take(t.Context(), 1<<40); err != nil {
		t.Errorf("who is in no room: %v", err)
	}
}

// TestWhoIsToldToAskAgain: whoever waits for others to end. A request that alone wants more than its owner
// may hold never gets it.
func TestWhoIsToldToAskAgain(t *testing.T) {
	t.Parallel()
	room := backend.NewRoom()
	one, leaveOne := room.Enter(t.Context(), "ann")
	defer leaveOne()
	two, leaveTwo := room.Enter(t.Context(), "ann")
	defer leaveTwo()
	if err := backend.Take(one, 1); err != nil {
		t.Fatal(err)
	}
	if err := backend.Take(two, backend.RoomEach); !errors.Is(err, fault.ErrExhausted) || fault.RetryAfter(err) == 0 {
		t.Errorf("beside another: %v", err)
	}
	for _, n := range []int{backend.RoomEach, math.MaxInt, -1} {
		if err := backend.Take(one, n); !errors.Is(err, fault.ErrExhausted) || fault.RetryAfter(err) != 0 {
			t.Errorf("%d more by itself: %v, after %s", n, err, fault.RetryAfter(err))
		}
	}
}

// TestNoSumGivesRoom: what is taken or given back by a number that ran over leaves the bounds as they are.
func TestNoSumGivesRoom(t *testing.T) {
	t.Parallel()
	room := backend.NewRoom()
	wrong, leave := room.Enter(t.Context(), "ann")
	defer leave()
	for _, n := range []int{-1, math.MinInt, math.MaxInt, math.MaxInt - backend.RoomEach, backend.RoomEach + 1} {
		if err := backend.Take(wrong, n); !errors.Is(err, fault.ErrExhausted) {
			t.Errorf("%d bytes are taken: %v", n, err)
		}
		backend.Give(wrong, -n)
	}
	if err := backend.Take(wrong, backend.RoomEach); err != nil {
		t.Errorf("all of a token's room: %v", err)
	}
	if err := backend.Take(wrong, 1); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("a byte more: %v", err)
	}
}

// TestRoomHasAPace: what an owner sends beyond its room is read no faster than its
// pace, over all its requests, and another's is read at once.
func TestRoomHasAPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		room := backend.NewRoom()
		send := func(owner string, n int) time.Duration {
			t.Helper()
			began := time.Now()
			for ; n > 0; n -= backend.RoomEach / 2 { // each request holds less than there is room for
				ctx, leave := room.Enter(t.Context(), owner)
				if _, err := io.Copy(io.Discard, backend.Held(ctx, bytes.NewReader(make([]byte, min(n, backend.RoomEach/2))))); err != nil {
					t.Fatal(err)
				}
				leave()
			}
			return time.Since(began)
		}
		if took := send("ann", backend.RoomEach); took != 0 {
			t.Errorf("what fits was held back for %v", took)
		}
		if took := send("ann", 8*backend.RoomPace); took.Round(time.Second) != 8*time.Second {
			t.Errorf("eight seconds' worth took %v", took)
		}
		if took := send("bob", backend.RoomEach); took != 0 {
			t.Errorf("another was held back for %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		within, leave := room.Enter(ctx, "ann")
		defer leave()
		cancel()
		if _, err := backend.Held(within, bytes.NewReader([]byte("x"))).Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("nobody waits any more, and the read told %v", err)
		}
	})
}

// TestWhoHasLeftTakesNothing: what nobody would give back, and however late it comes.
func TestWhoHasLeftTakesNothing(t *testing.T) {
	t.Parallel()
	room := backend.NewRoom()
	ctx, leave := room.Enter(t.Context(), "ann")
	account := backend.Account(ctx)
	if !account.Take(1) {
		t.Fatal("there is no room")
	}
	leave()
	account.Give(1)
	if account.Take(1) || backend.Take(ctx, 1) == nil {
		t.Error("a request that is over took room")
	}
	again, leaveAgain := room.Enter(t.Context(), "ann")
	defer leaveAgain()
	if err := backend.Take(again, backend.RoomEach); err != nil {
		t.Errorf("all of it is there: %v", err)
	}
}

// TestWhatTheServerHasOfABodyIsReleasedWhenItIsRead: a request that goes on and holds nothing of its own gives back none of the room for
// what it has not read, neither at once nor with what it gives back of its own. The control is one that has read all.
func TestWhatTheServerHasOfABodyIsReleasedWhenItIsRead(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{false, true} {
		room := backend.NewRoom()
		free := func() (bytes int) {
			ctx, leave := room.Enter(t.Context(), "ann")
			defer leave()
			for backend.Take(ctx, 1<<10) == nil {
				bytes += 1 << 10
			}
			return bytes
		}
		ctx, leave := room.Enter(t.Context(), "ann")
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", io.MultiReader(bytes.NewReader(make([]byte, 100))))
		r.ProtoMajor, r.ContentLength = 2, -1
		if err := backend.Buffered(ctx, r); err != nil {
			t.Fatal(err)
		}
		body := io.LimitReader(r.Body, 100)
		if all {
			body = r.Body
		}
		if n, err := io.Copy(io.Discard, body); n != 100 || err != nil {
			t.Fatal(n, err)
		}
		want := backend.RoomEach - backend.ReceiveBuffer
		if all {
			want = backend.RoomEach
		}
		giveBack, err := backend.Lend(ctx, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if got := free(); got != want-1<<20 {
			t.Errorf("read %t: while it has room of its own %d bytes are free, not %d", all, got, want-1<<20)
		}
		backend.Release(ctx)
		if got := free(); got != want {
			t.Errorf("read %t: after its release %d bytes are free, not %d", all, got, want)
		}
		if giveBack(); free() != want {
			t.Errorf("read %t: what it gave back twice was the server's", all)
		}
		if leave(); free() != backend.RoomEach { // over HTTP/1, where nothing waits
			t.Errorf("read %t: %d bytes are free at its end", all, free())
		}
	}
}
