package e2b

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// thawsLong is longer than an answer takes that waits for nothing, and shorter than a wait for a thaw.
const thawsLong = 15 * time.Second

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
			select {
			case err := <-answered:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(thawsLong):
				t.Error("it is not answered")
			}
		})
	}
}

// TestWhoWaitsForAThawTakesRoom: a visitor need have no token, and thirty seconds are long. A request that waits for
// a thaw holds its owner's room, as if it were answered already.
func TestWhoWaitsForAThawTakesRoom(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse("policy", []byte("published_ports: [ 3000 ]\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := newDataStage(t)
	s.serves(3000, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inside") })
	wakes := s.box.Thaws(t.Context(), t.TempDir(), p)
	left := func() (n int) {
		ctx, leave := s.data.cfg.Room.Enter(t.Context(), backend.Visitors("sandbox "+boxID))
		defer leave()
		for backend.Take(ctx, visitCost/2) == nil {
			n++
		}
		return n
	}
	before := left()
	answered := make(chan int, 1)
	visit := func() {
		r := s.port("3000", "/")
		go func() { answered <- s.statusOf(r) }()
	}
	visit()
	for began := time.Now(); left() == before; {
		select {
		case status := <-answered:
			if status != http.StatusTooManyRequests { // it came while left had the whole room
				t.Fatalf("it is answered %d, and does not wait", status)
			}
			visit()
		default:
		}
		if time.Since(began) > 20*time.Second {
			t.Fatal("a visitor who waits takes no room")
		}
	}
	close(wakes)
	if status := <-answered; status != http.StatusOK {
		t.Errorf("it is answered %d", status)
	}
}

// TestAWaitForAThawEndsWithTheToken that the sandbox is of.
func TestAWaitForAThawEndsWithTheToken(t *testing.T) {
	t.Parallel()
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tok, _, err := book.Issue(t.Context(), token.Grant{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	s := newDataStageOf(t, sandbox.Owner{Token: tok.ID}, book)
	s.box.Thaws(t.Context(), t.TempDir(), nil) // and never does
	in := make(chan struct{})
	s.data.cfg.Sandboxes = touched{s.boxes, in}
	answered, r := make(chan int, 1), s.request(http.MethodGet, "/files?path=a", nil)
	go func() { answered <- s.statusOf(r) }()
	<-in
	if _, err := book.Revoke(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-answered:
	case <-time.After(thawsLong):
		t.Error("it waits although its token is revoked")
	}
}

// touched tells once that a request was let through.
type touched struct {
	backend.Sandboxes
	in chan struct{}
}

func (s touched) Touch(id string) {
	s.Sandboxes.Touch(id)
	close(s.in)
}

// statusOf asks, from any goroutine; 0: there is no answer.
func (s *dataStage) statusOf(r *http.Request) int {
	res, err := s.server.Client().Do(r)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}
