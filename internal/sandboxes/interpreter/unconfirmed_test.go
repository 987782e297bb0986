package interpreter

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// deaf is a sandbox whose agent confirms no kill, until it hears.
type deaf struct {
	*stage
	hears *atomic.Bool
}

func (d deaf) Signal(ctx context.Context, kernel, name string) error {
	switch {
	case d.hears.Load():
		return d.stage.Signal(ctx, kernel, name)
	case name == "KILL":
		return fault.New(fault.ErrUnavailable, "the agent of the sandbox did not confirm within 15s that the command got its signal, so that it may run on")
	}
	return nil // an interrupt that comes to nothing
}

// TestAKillThatNobodyConfirmed is told as none, by whichever way it came: the context is there, and
// gets no other kernel until the first is known to have ended. Then it goes on.
func TestAKillThatNobodyConfirmed(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(i *Interpreter, c *Cell) error{
		"a cell that is left": func(_ *Interpreter, c *Cell) error {
			c.Leave(false)
			return nil
		},
		"a restart": func(i *Interpreter, _ *Cell) error {
			return i.Restart(context.Background(), "box", defaultPrefix+Python, "/home/user", nil)
		},
		"a removal": func(i *Interpreter, _ *Cell) error {
			return i.Remove(context.Background(), "box", defaultPrefix+Python, "/home/user")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits until an interrupt was in vain
			release := make(chan struct{})
			defer close(release)
			forever := func(k *pretended, cell string, _ <-chan struct{}) {
				k.begin(cell)
				k.say(`{"kind":"stdout","cell":"` + cell + `","text":"here"}`)
				<-release
			}
			s := &stage{t: t, scripts: map[string]script{"forever": forever, "say": good()}, refuse: map[string]error{}}
			hears := &atomic.Bool{}
			i := New(Config{MaxOutput: 2 << 20, Log: slog.New(slog.DiscardHandler), Host: func(string) (Host, error) { return deaf{s, hears}, nil }})
			c, err := i.Execute(t.Context(), "box", Request{Code: "forever", Home: "/home/user"})
			if err != nil {
				t.Fatal(err)
			}
			<-c.Events
			err = ends(i, c)
			if name != "a cell that is left" && (!errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "nobody confirmed")) {
				t.Errorf("it is told as done: %v", err)
			}
			c.Leave(false)
			if _, err := i.Execute(t.Context(), "box", Request{Code: "say", Home: "/home/user"}); err == nil || !strings.Contains(err.Error(), "nobody confirmed") {
				t.Errorf("another cell runs beside the first: %v", err)
			}
			s.mu.Lock()
			if len(s.kernels) != 1 {
				t.Errorf("there are %d kernels", len(s.kernels))
			}
			for _, exit := range s.ends {
				if exit.Code == 0 || strings.Contains(exit.Error, "its kernel was ended") || !strings.Contains(exit.Error, "nobody confirmed") {
					t.Errorf("on record is: %+v", exit)
				}
			}
			s.mu.Unlock()
			hears.Store(true)
			if got := execute(t, i, "say"); got.failure != nil {
				t.Errorf("once the kill is confirmed, the next cell fails: %+v", got.failure)
			}
		})
	}
}
