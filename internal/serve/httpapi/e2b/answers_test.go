package e2b_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// slowClient takes nothing of an answer until it is let go.
type slowClient struct {
	*httptest.ResponseRecorder
	writing *sync.WaitGroup
	once    sync.Once
	free    <-chan struct{}
}

// Write implements io.Writer.
func (s *slowClient) Write(p []byte) (int, error) {
	s.once.Do(s.writing.Done)
	<-s.free
	return s.ResponseRecorder.Write(p)
}

// heldBy asks for something with so many requests of ann's whose client reads nothing, and tells how much
// more the heap is when all are being answered.
func (h *house) heldBy(requests int, route string) int64 {
	h.t.Helper()
	method, path, _ := strings.Cut(route, " ")
	before := inUse()
	free := make(chan struct{})
	var writing, over sync.WaitGroup
	for range requests {
		writing.Add(1)
		over.Go(func() {
			r := httptest.NewRequestWithContext(h.t.Context(), method, path, nil)
			r.Header.Set("X-Api-Key", h.ann)
			w := &slowClient{ResponseRecorder: httptest.NewRecorder(), writing: &writing, free: free}
			w.Body = nil
			h.control.ServeHTTP(w, r)
			w.once.Do(writing.Done) // an answer without a body
		})
	}
	writing.Wait()
	held := inUse() - before
	close(free)
	over.Wait()
	return held
}

// TestAnswersOfOneTokenTakeRoom: what the daemon holds of answers that their client does not read is
// bounded for each token, whichever they are.
func TestAnswersOfOneTokenTakeRoom(t *testing.T) {
	const requests = 32
	most := int64(3 * backend.RoomEach) // what is counted, what is written of it, and the rest of the process
	t.Run("the log of a build", func(t *testing.T) {
		h := newWorkshop(t)
		step := `awk 'BEGIN { s = sprintf(\"%800s\", \"\"); gsub(/ /, \"<\", s); for (i = 0; i < 4900; i++) print s }'`
		a, s := h.build("app", `{"fromTemplate":"base","steps":[{"type":"RUN","args":["`+step+`"]}]}`)
		if s.Status != "ready" && len(s.LogEntries) < 900 {
			t.Fatalf("%s %+v, %d entries", s.Status, s.Reason, len(s.LogEntries))
		}
		route := "GET /templates/" + a.TemplateID + "/builds/" + a.BuildID + "/logs"
		one := h.ask(h.ann, route, "").Body.Len()
		if small := h.heldBy(requests, route+"?limit=1"); small > most {
			t.Errorf("%d MiB with one line", small>>20)
		}
		held := h.heldBy(requests, route)
		t.Logf("one answer has %d KiB; %d that nobody reads hold %d MiB", one>>10, requests, held>>20)
		if held > most {
			t.Errorf("%d requests of one token hold %d MiB; its room is %d MiB", requests, held>>20, backend.RoomEach>>20)
		}
	})
	t.Run("the list of sandboxes", func(t *testing.T) {
		h := newHouse(t)
		metadata := make([]string, 0, 60)
		for i := range 60 {
			metadata = append(metadata, `"k`+string(rune('a'+i%26))+string(rune('a'+i/26))+`":"`+strings.Repeat("<", 4<<10)+`"`)
		}
		h.create("")
		if small := h.heldBy(requests, "GET /sandboxes"); small > most {
			t.Errorf("%d MiB with one sandbox", small>>20)
		}
		for range 10 {
			h.create(`,"metadata":{` + strings.Join(metadata, ",") + `}`)
		}
		var first []listed
		if next := h.must(http.StatusOK, &first, h.ann, "GET /v2/sandboxes", "").Get("x-next-token"); next == "" || len(first) > 9 {
			t.Errorf("a page has %d sandboxes of 240 KiB, and the next is %q", len(first), next)
		}
		if all := h.ids(""); len(all) != 11 {
			t.Errorf("%d of 11 sandboxes are on the pages", len(all))
		}
		one := h.ask(h.ann, "GET /sandboxes", "").Body.Len()
		held := h.heldBy(requests, "GET /sandboxes")
		t.Logf("one answer has %d KiB; %d that nobody reads hold %d MiB", one>>10, requests, held>>20)
		if held > most {
			t.Errorf("%d requests of one token hold %d MiB; its room is %d MiB", requests, held>>20, backend.RoomEach>>20)
		}
	})
}
