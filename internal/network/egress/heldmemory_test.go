package egress_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/credentials"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// TestAnswersThatAreLookedThroughTakeMemory: of those that are under way at once as many as the sandbox's budget has
// room for. The control: all of them where nothing is looked for.
func TestAnswersThatAreLookedThroughTakeMemory(t *testing.T) {
	const many = 16
	for name, seek := range map[string]bool{"looked through": true, "the control": false} {
		e := endLimited(t, egress.Limits{Memory: 8 << 20}, judgedDocument, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "],.")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}), "api.example")
		if seek {
			x, err := credentials.Exchanges{Door: otherHostDoor{value: "sk-Zq81xKf0TwLm33pQ9vB7"}}.Exchange(t.Context(), requests.Connection{Sandbox: "sb-1", Name: "api.example", Port: 443, TLS: true})
			if err != nil {
				t.Fatal(err)
			}
			e.door.exchange = x
		}
		c := e.client(t, true)
		var bodies []io.Closer
		came, refused := 0, 0
		for range many {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/good/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			a, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, a.Body)
			if a.StatusCode == http.StatusOK {
				came++
				continue
			}
			said, _ := io.ReadAll(a.Body)
			if refused++; !strings.Contains(string(said), memoryRule) {
				t.Errorf("%s: %d %s", name, a.StatusCode, said)
			}
		}
		for _, body := range bodies {
			_ = body.Close()
		}
		if came < 5 || (refused > 0) != seek {
			t.Errorf("%s: %d came, and %d were refused", name, came, refused)
		}
	}
}
