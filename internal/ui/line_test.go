package ui

import (
	"io"
	"os"
	"testing"
)

// What is no terminal gets no line that is written over; with verbose it gets each step.
func TestStepsWithoutATerminal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		verbose bool
		want    string
	}{{false, ""}, {true, "fetch 40%: a\\x1bb\nunpack\n"}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		steps := NewSteps(w, tt.verbose)
		steps.Show("fetch", "a\x1bb", 40)
		steps.Show("unpack", "", 0)
		steps.Done()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != tt.want {
			t.Errorf("verbose %v: %q, %v, want %q", tt.verbose, got, err, tt.want)
		}
	}
}
