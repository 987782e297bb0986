package e2b_test

import (
	"net/http"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/httpapi/backend"
)

// TestAForkThatCantBeAnsweredIsNotMade: its client would hear of none of its copies. The control is one for which
// there is room.
func TestAForkThatCantBeAnsweredIsNotMade(t *testing.T) {
	h := newHouse(t)
	box := h.create("")
	ctx, leave := h.room.Enter(t.Context(), h.annToken.ID) // another request of the token's
	if err := backend.Take(ctx, backend.RoomEach-16<<10); err != nil {
		t.Fatal(err)
	}
	w := h.ask(h.ann, "POST /sandboxes/"+box.SandboxID+"/fork", `{"count":100}`)
	if n := len(h.life.List()); w.Code != http.StatusTooManyRequests || n != 1 {
		t.Errorf("a fork that is too much is answered %d %.200s, and %d sandboxes were made", w.Code, w.Body, n-1)
	}
	leave()
	var made []any
	h.must(http.StatusCreated, &made, h.ann, "POST /sandboxes/"+box.SandboxID+"/fork", `{"count":100}`)
	if len(made) != 100 {
		t.Errorf("the control made %d", len(made))
	}
}
