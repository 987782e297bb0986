package backend_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/httpapi/backend"
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
	if err := backend.Take(late, 1); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("more than there is for all: %v", err)
	}
	leave[0]()
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
