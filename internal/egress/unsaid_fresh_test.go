package egress_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/door"
)

// reasonDoor keeps what it is told of refusals.
type reasonDoor struct {
	door.Door
	told chan door.HostRefusal
}

func (d reasonDoor) HostRefused(_ context.Context, h door.HostRefusal) (door.Answer, error) {
	d.told <- h
	return door.Answer{}, nil
}

// TestARefusalThatTheDoorCanNotBeTold: a request is refused for a coding that nobody reads, and the
// refusal comes on record whatever the client calls that coding: the door's wire takes no text that is
// not UTF-8, and a client's word that is cut within a character is none. The control: a short word comes on record.
func TestARefusalThatTheDoorCanNotBeTold(t *testing.T) {
	const rules = "network_allowlist:\n  - { host: api.example, paths: [\"/good\"], deny_patterns: [\"secret-[0-9]+\"] }\n"
	for what, coding := range map[string]string{"short": "x-none", "long": strings.Repeat("a", 39) + "\u00e9"} {
		e := endUnder(t, rules, &seen{}, "api.example")
		c := e.client(t, false)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/good", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Encoding", coding)
		a, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
		if a.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("INCONCLUSIVE: %s: status %d", what, a.StatusCode)
		}
		e.door.mu.Lock()
		rejected := append([]string(nil), e.door.rejected...)
		e.door.mu.Unlock()
		if len(rejected) != 1 {
			t.Fatalf("INCONCLUSIVE: %s: %d refusals", what, len(rejected))
		}
		near, far := net.Pipe()
		d := reasonDoor{told: make(chan door.HostRefusal, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = door.Serve(ctx, far, d) }()
		client := door.NewClient(near)
		if _, err := client.HostRefused(t.Context(), door.HostRefusal{Sandbox: "sb-1", Name: "api.example", Port: 443, Reason: rejected[0]}); err != nil {
			t.Errorf("%s: the refusal %q does not come on record: %v", what, rejected[0], err)
		}
		_ = client.Close()
		cancel()
	}
}
