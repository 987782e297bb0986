package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// passageLines are a ring's passages as lines: seconds since began, stdout, stderr.
func passageLines(r *ring, began time.Time) []string {
	var lines []string
	for _, p := range r.passages(time.Now()) {
		lines = append(lines, fmt.Sprintf("%s %q %q", p.At.Sub(began), p.Stdout, p.Stderr))
	}
	return lines
}

func wantPassages(t *testing.T, r *ring, began time.Time, want ...string) {
	t.Helper()
	if got := passageLines(r, began); !slices.Equal(got, want) {
		t.Errorf("told are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestPassages: what came within a second is one, and is told when that is over: once,
// whatever comes later, and whoever reads or does not.
func TestPassages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, began := newRing(minRing, nil), time.Now()
		r.holdOutput() // for a reader that has not come
		put := func(kind channel.FrameType, text string) { r.append(kind, []byte(text)) }
		wantPassages(t, r, began)
		put(channel.FrameStdout, "a")
		time.Sleep(passageTime / 2)
		put(channel.FrameStderr, "bad")
		put(channel.FrameStdout, "b")
		wantPassages(t, r, began)
		time.Sleep(passageTime / 2)
		first := `1s "ab" "bad"`
		wantPassages(t, r, began, first)
		time.Sleep(3 * passageTime)
		put(channel.FrameStdout, "later")
		wantPassages(t, r, began, first)
		time.Sleep(passageTime / 4)
		r.closeRing()
		time.Sleep(time.Hour)
		wantPassages(t, r, began, first, `4.25s "later" ""`)
		if !r.held {
			t.Error("who tells what was written has become its first reader")
		}
	})
}

// TestPassagesAreBounded: they have the newest bytes of a ring and no others, however
// slowly or fast those came, in pieces of a bounded size and a bounded number.
func TestPassagesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const size = 256 << 10
		r := newRing(size, nil)
		var sent []byte
		for i := range 3 {
			sent = append(sent, bytes.Repeat([]byte{byte('a' + i)}, size/2)...)
		}
		r.append(channel.FrameStdout, sent)
		r.closeRing()
		var got []byte
		for _, p := range r.passages(time.Now()) {
			if len(p.Stdout) > passageBytes {
				t.Errorf("a passage of %d bytes", len(p.Stdout))
			}
			got = append(got, p.Stdout...)
		}
		if !bytes.Equal(got, sent[len(sent)-size:]) {
			t.Errorf("%d bytes, not the newest %d", len(got), size)
		}

		slow := newRing(minRing, nil)
		for range 1000 {
			slow.append(channel.FrameStdout, []byte("."))
			time.Sleep(2 * passageTime)
		}
		if n := len(slow.passages(time.Now())); n != minRing/passageCost || len(slow.marks) != n {
			t.Errorf("%d passages, and %d marks", n, len(slow.marks))
		}
	})
}

// TestOutput: a command's output comes over the keeper's socket with its user, while
// the command runs and when it has ended.
func TestOutput(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.launch("box", "guest")
	s.must(s.Exec(t.Context(), "box", channel.Exec{ID: "both", User: "root", Argv: []string{"both", "60000"}}, ExecOptions{AwaitReader: true}))
	s.must(s.Exec(t.Context(), "box", channel.Exec{ID: "cat", Argv: []string{"cat"}, Stdin: true}, ExecOptions{}))
	s.must(s.Send(t.Context(), "box", "cat", channel.FrameStdin, []byte("to the cat")))
	var cat Output
	s.eventually("what the cat says is told", func() bool {
		var err error
		cat, err = s.Output(t.Context(), "box", "cat")
		s.must(err)
		return len(cat.Passages) > 0
	})
	if text := string(cat.Passages[0].Stdout); cat.User != "" || text != "to the cat" {
		t.Errorf("%+v, %q", cat, text)
	}
	s.result("box", "both")
	both, err := s.Output(t.Context(), "box", "both")
	s.must(err)
	var out, errs strings.Builder
	for i, p := range both.Passages {
		out.Write(p.Stdout)
		errs.Write(p.Stderr)
		if i > 0 && p.At.Before(both.Passages[i-1].At) {
			t.Error("not in their order")
		}
	}
	if want := strings.Repeat("out", 20000); both.User != "root" || len(both.Passages) < 3 || out.String() != want || errs.String() != strings.ReplaceAll(want, "out", "err") {
		t.Errorf("of %q, in %d passages, %d and %d bytes", both.User, len(both.Passages), out.Len(), errs.Len())
	}
	if _, err := s.Output(t.Context(), "box", "none"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("of a command that is not there: %v", err)
	}
}
