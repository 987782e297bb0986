package loglimit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clock is a time that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newLog(to *bytes.Buffer) (*slog.Logger, *clock) {
	c := &clock{at: time.Unix(1_000, 0)}
	return slog.New(limitHandler(slog.NewTextHandler(to, nil), c.now)), c
}

// TestAKindIsToldSometimes: few lines of a kind are in the log, then how many there were; lines of
// another message, level or sandbox are other kinds. The control is a log without a limit.
func TestAKindIsToldSometimes(t *testing.T) {
	t.Parallel()
	var out, plain bytes.Buffer
	log, c := newLog(&out)
	control := slog.New(slog.NewTextHandler(&plain, nil))
	write := func(l *slog.Logger) {
		for i := range 1_000 {
			l.Warn("a page is refused", "sandbox", "sb1", "error", errors.New(strings.Repeat("x", i)))
			l.With("sandbox", "sb2").Warn("a page is refused", "n", i)
			l.WithGroup("g").Error("a page is refused", "n", i)
		}
	}
	write(log)
	write(control)
	if n := strings.Count(plain.String(), "\n"); n != 3_000 {
		t.Fatalf("INCONCLUSIVE: %d lines without a limit", n)
	}
	if n := strings.Count(out.String(), "\n"); n != 3*PerKind {
		t.Errorf("%d lines: %s", n, out.String())
	}
	log.Info("something else")
	if !strings.Contains(out.String(), "something else") {
		t.Error("one kind keeps another from the log")
	}
	out.Reset()
	c.at = c.at.Add(Window)
	log.Info("later")
	text := out.String()
	if strings.Count(text, "repeated=995") != 3 || !strings.Contains(text, "sandbox=sb1") || !strings.Contains(text, "sandbox=sb2") || !strings.Contains(text, "later") {
		t.Errorf("after a minute: %s", text)
	}
	out.Reset()
	write(log)
	if n := strings.Count(out.String(), "\n"); n != 3*PerKind {
		t.Errorf("%d lines in the next minute: %s", n, out.String())
	}
}

// TestAllKindsTogether: whoever makes up kinds fills no log either.
func TestAllKindsTogether(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, c := newLog(&out)
	for i := range 20 * All {
		log.Warn(fmt.Sprint("kind ", i), "sandbox", fmt.Sprint(i))
	}
	if n := strings.Count(out.String(), "\n"); n != All {
		t.Errorf("%d lines", n)
	}
	out.Reset()
	c.at = c.at.Add(Window)
	log.Info("later")
	if !strings.Contains(out.String(), fmt.Sprint("repeated=", 19*All)) {
		t.Errorf("%.300s", out.String())
	}
}

// TestLongValues: a line's length is not others' to choose.
func TestLongValues(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, _ := newLog(&out)
	long := strings.Repeat("y", 1<<20)
	log.With("of", long).Info(long, "text", long, "error", errors.New(long), slog.Group("g", "text", long), "list", []string{long})
	if n := out.Len(); n > 8*maxText || !strings.Contains(out.String(), "...") {
		t.Errorf("%d bytes", n)
	}
}

// TestTrim: a log that has grown is set aside, whoever appends to it; a link is not followed.
func TestTrim(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.log")
	writer, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	for round := range 3 {
		small := []byte("small\n")
		if _, err := writer.Write(small); err != nil {
			t.Fatal(err)
		}
		if err := Trim(path); err != nil || size(t, path) == 0 {
			t.Errorf("a small one: %v, %d bytes", err, size(t, path))
		}
		if _, err := writer.Write(bytes.Repeat([]byte("large\n"), Room/3)); err != nil {
			t.Fatal(err)
		}
		if err := Trim(path); err != nil || size(t, path) != 0 || size(t, path+".1") != Room {
			t.Errorf("round %d: %v, %d and %d bytes", round, err, size(t, path), size(t, path+".1"))
		}
	}
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, make([]byte, 2*Room), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.log")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := Trim(link); err != nil || size(t, target) != 2*Room {
		t.Errorf("through a link: %v, %d bytes", err, size(t, target))
	}
	if err := Trim(filepath.Join(dir, "none.log")); err != nil {
		t.Errorf("none: %v", err)
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

var _ slog.Handler = (*limitingHandler)(nil)

// TestEnabled is the next handler's to say.
func TestEnabled(t *testing.T) {
	t.Parallel()
	h := Limit(slog.NewTextHandler(&bytes.Buffer{}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if h.Enabled(context.Background(), slog.LevelInfo) || !h.Enabled(context.Background(), slog.LevelWarn) {
		t.Error("another level")
	}
}
