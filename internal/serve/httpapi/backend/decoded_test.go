package backend_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// TestWhatARequestBecomesTakesRoom: the room of a token is of the daemon's memory, so a request takes of it
// what it becomes there, and not only its bytes.
func TestWhatARequestBecomesTakesRoom(t *testing.T) {
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	decode := func(text string) int64 {
		room := backend.NewRoom()
		ctx, leave := room.Enter(t.Context(), "ann")
		defer leave()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/sandboxes", strings.NewReader(text))
		var body api.CreateSandbox
		before := inUse()
		_, err := backend.ReadJSON(r, 16<<20, &body)
		held := inUse() - before
		if err != nil {
			t.Logf("refused: %v", err)
		}
		runtime.KeepAlive(&body)
		return held
	}
	if control := decode(`{"task":"` + strings.Repeat("x", 15<<20) + `"}`); control > 3*backend.RoomEach {
		t.Fatalf("a long text takes %d MiB", control>>20)
	}
	if held := decode(`{"mounts":[` + strings.Repeat("{},", 5_000_000) + `{}]}`); held > 4*backend.RoomEach {
		t.Errorf("a request of 15 MiB takes %d MiB once it is decoded; the room of its token is %d MiB", held>>20, backend.RoomEach>>20)
	}
}

// TestTakeDecoded: what a text becomes is counted by the type that it is decoded into; text alone is not.
func TestTakeDecoded(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(`{},`, 400_000) + `{}`
	for name, c := range map[string]struct {
		text string
		into any
		fits bool
	}{
		"long text":                  {`{"task":"` + strings.Repeat("x", 8<<20) + `"}`, &api.CreateSandbox{}, true},
		"few":                        {`{"mounts":[{},{}]}`, &api.CreateSandbox{}, true},
		"many in a list":             {`{"mounts":[` + many + `]}`, &api.CreateSandbox{}, false},
		"many without a place":       {`{"nothing":[` + many + `]}`, &api.CreateSandbox{}, false},
		"many of any type":           {`[` + many + `]`, nil, false},
		"many by a name in escapes":  {`{"mo\u0075nts":[` + many[:900_000] + `{}]}`, &api.CreateSandbox{}, false},
		"many by a name of any case": {`{"MOUNTſ":[` + many[:900_000] + `{}]}`, &api.CreateSandbox{}, false},
		"many small objects":         {`[` + strings.Repeat(`{"":0},`, 60_000) + `{}]`, nil, false},
		"no JSON":                    {`{"mounts":[`, &api.CreateSandbox{}, true},
		"nor this":                   {`{"mounts" x`, nil, true},
	} {
		ctx, leave := backend.NewRoom().Enter(t.Context(), "ann")
		if err := backend.TakeDecoded(ctx, []byte(c.text), c.into); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
		leave()
	}
}
