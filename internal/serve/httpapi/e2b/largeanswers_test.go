package e2b_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// largeMetadata is as much as a sandbox may have, about 250 KiB.
func largeMetadata() string {
	all := make([]string, 0, 60)
	for i := range 60 {
		all = append(all, `"k`+string(rune('a'+i%26))+string(rune('a'+i/26))+`":"`+strings.Repeat("x", 4<<10)+`"`)
	}
	return `,"metadata":{` + strings.Join(all, ",") + `}`
}

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

// TestAllThatRunAreListed on the one page of the first version, also when they are more than a token's requests may
// hold at one time.
func TestAllThatRunAreListed(t *testing.T) {
	h := newHouse(t)
	box := h.create(largeMetadata())
	for range 7 {
		h.must(http.StatusCreated, new([]any), h.ann, "POST /sandboxes/"+box.SandboxID+"/fork", `{"count":10}`)
	}
	w := h.ask(h.ann, "GET /sandboxes", "")
	if got := w.Body.Len() >> 20; w.Code != http.StatusOK || got < 16 {
		t.Fatalf("%d, and %d MiB: %.200s", w.Code, got, w.Body)
	}
	var all []listed
	h.must(http.StatusOK, &all, h.ann, "GET /sandboxes", "")
	if len(all) != 71 {
		t.Errorf("%d of 71 are listed", len(all))
	}
}
