package interpreter

import (
	"slices"
	"testing"
	"time"
)

// TestAFoundKernelEndsItsCellFirst: a kernel that another daemon left a cell to gets the next
// one when that has ended: by itself, since it was interrupted, or with the kernel. Cells of one
// context never run side by side.
func TestAFoundKernelEndsItsCellFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code   string
		kernel string // that runs the next cell
	}{
		"one that ends by itself":      {"short", "krn-1"},
		"one that hears an interrupt":  {"deaf", "krn-1"},
		"one that hears none":          {"stubborn", "krn-2"},
		"none, and the kernel is idle": {"", "krn-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, end, quit := make(chan struct{}), make(chan struct{}), make(chan struct{})
			defer close(quit)
			var s *stage
			var i *Interpreter
			running := make(chan struct{}, 1) // holds one while the first cell runs
			first := func(ending <-chan struct{}) script {
				return func(k *pretended, cell string, interrupted <-chan struct{}) {
					running <- struct{}{}
					k.begin(cell)
					close(begun)
					if ending == nil {
						ending = interrupted
					}
					select {
					case <-ending:
					case <-quit:
					}
					k.say(`{"kind":"stdout","cell":"` + cell + `","text":"of the first"}`)
					<-running
					k.done(cell)
				}
			}
			i, s = newStage(t, map[string]script{
				"short": first(end), "deaf": first(nil), "stubborn": first(quit),
				"idle": func(k *pretended, cell string, _ <-chan struct{}) { k.begin(cell); k.done(cell) },
				"next": func(k *pretended, cell string, _ <-chan struct{}) {
					if len(running) > 0 && !s.find("krn-1").ended() {
						t.Error("two cells of one context run at a time")
					}
					k.begin(cell)
					k.say(`{"kind":"stdout","cell":"` + cell + `","text":"` + k.ID + `"}`)
					k.done(cell)
				},
			})
			if c.code == "" {
				execute(t, i, "idle")
			} else {
				cell, err := i.Execute(t.Context(), "box", Request{Code: c.code, Home: "/home/user"})
				if err != nil {
					t.Fatal(err)
				}
				go func() { _ = collect(cell) }() // the daemon that asked for it ends without a word
				<-begun
			}
			other := New(i.cfg)
			answer := make(chan told, 1)
			go func() { answer <- execute(t, other, "next") }()
			if c.code == "short" {
				close(end)
			}
			select {
			case got := <-answer:
				if got.stdout != c.kernel || got.failure != nil {
					t.Errorf("the next cell says %q, %v, not %q", got.stdout, got.failure, c.kernel)
				}
			case <-time.After(time.Minute):
				t.Error("the next cell waits for the one that nobody follows any more")
			}
		})
	}
}

// TestAnEarlierReleasesKernelLivesOn: a kernel that the daemon from before an upgrade started
// does not know that it can be asked whether it is idle. It keeps what its context has.
func TestAnEarlierReleasesKernelLivesOn(t *testing.T) {
	t.Parallel()
	say := func(k *pretended, cell string, _ <-chan struct{}) {
		k.begin(cell)
		k.say(`{"kind":"stdout","cell":"` + cell + `","text":"` + k.ID + `"}`)
		k.done(cell)
	}
	i, s := newStage(t, map[string]script{"first": say, "next": say})
	s.older = true
	execute(t, i, "first")
	k := s.find("krn-1")
	k.Argv = slices.DeleteFunc(slices.Clone(k.Argv), func(arg string) bool { return arg == tellsIdle })
	if got := execute(t, New(i.cfg), "next"); got.stdout != "krn-1" || got.failure != nil {
		t.Errorf("after the upgrade %q runs the cell: %v", got.stdout, got.failure)
	}
}
