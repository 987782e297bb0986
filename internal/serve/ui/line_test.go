package ui

import (
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A file that is no terminal gets no line that is written over; with verbose it gets each step.
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

// written is what is written to a file that is no terminal while do runs.
func written(t *testing.T, do func(f *os.File)) string {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	do(f)
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestALogIsNotSilent: whoever reads the log of a build sees four times a minute that something
// goes on, and nothing of what is done at once.
func TestALogIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := func(d time.Duration) func(*os.File) {
			return func(f *os.File) {
				if err := showWaiting(NewLine(f), "making a sandbox", func() error { time.Sleep(d); return nil }); err != nil {
					t.Error(err)
				}
			}
		}
		for d, want := range map[time.Duration]string{
			time.Second:                      "",
			quiet - time.Second:              "",
			2*quiet + time.Second:            "making a sandbox (15s)\nmaking a sandbox (30s)\n",
			time.Minute + 4*time.Millisecond: "making a sandbox (15s)\nmaking a sandbox (30s)\nmaking a sandbox (45s)\nmaking a sandbox (1m0s)\n",
		} {
			if got := written(t, wait(d)); got != want {
				t.Errorf("%s: %q, want %q", d, got, want)
			}
		}
		got := written(t, func(f *os.File) {
			steps := NewSteps(f, false)
			steps.Show("packages", "a\x1bb", 40)
			time.Sleep(quiet + time.Second)
			steps.Show("image", "", 0)
			time.Sleep(quiet)
			steps.Done()
		})
		if want := "packages 40%: a\\x1bb (15s)\nimage (30s)\n"; got != want {
			t.Errorf("steps: %q, want %q", got, want)
		}
		got = written(t, func(f *os.File) {
			line := NewLine(f)
			for i := range 40 {
				line.Show(fmt.Sprintf("%d of 40 records read", i))
				time.Sleep(time.Second)
			}
			line.Clear()
		})
		if want := "15 of 40 records read\n30 of 40 records read\n"; got != want {
			t.Errorf("a line: %q, want %q", got, want)
		}
	})
}
