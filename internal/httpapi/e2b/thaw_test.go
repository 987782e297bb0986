package e2b

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// TestClientsOfASandboxThatThawsWait until its processes are there, whichever way they come; the control is its health,
// which anybody may ask for.
func TestClientsOfASandboxThatThawsWait(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse("policy", []byte("published_ports: [ 3000 ]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		request func(s *dataStage) *http.Request
		waits   bool
	}{
		"a file":                      {func(s *dataStage) *http.Request { return s.request(http.MethodGet, "/files?path=a", nil) }, true},
		"a published port":            {func(s *dataStage) *http.Request { return s.port("3000", "/") }, true},
		"a port that nobody may have": {func(s *dataStage) *http.Request { return s.port("3001", "/") }, false},
		"health":                      {func(s *dataStage) *http.Request { return s.request(http.MethodGet, healthPath, nil) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDataStage(t)
			s.serves(3000, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inside") })
			wakes := s.box.Thaws(t.Context(), t.TempDir(), p)
			r := c.request(s)
			answered := make(chan error, 1)
			go func() {
				res, err := s.server.Client().Do(r)
				if err == nil {
					_ = res.Body.Close()
				}
				answered <- err
			}()
			if c.waits {
				select {
				case err := <-answered:
					t.Fatalf("it is answered before the sandbox has thawed (%v)", err)
				case <-time.After(50 * time.Millisecond): // which no answer takes
				}
				close(wakes)
			}
			if err := <-answered; err != nil {
				t.Error(err)
			}
		})
	}
}
