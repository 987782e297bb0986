package templatebuild_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/templatebuild"
)

// heard is a logger's handler that calls a function with each line.
type heard func()

func (heard) Enabled(context.Context, slog.Level) bool { return true }

func (h heard) Handle(context.Context, slog.Record) error {
	h()
	return nil
}

func (h heard) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h heard) WithGroup(string) slog.Handler { return h }

// TestNobodyWaitsForTheDiskOfAnothersBuild: while the end of a build is written, which may be 25 MB, others are
// told how theirs stand. That the writing failed is told where it was done: if that is under the lock, this
// test does not end.
func TestNobodyWaitsForTheDiskOfAnothersBuild(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.builder.Close()
	told := 0
	var builder *templatebuild.Builder
	var err error
	builder, err = templatebuild.Open(templatebuild.Config{Sandboxes: s, Recorder: s, Owed: s.owed, Distribution: s, Archive: s.archive, During: s.during, Dir: s.dir, Log: slog.New(heard(func() {
		told = len(builder.Builds(ann))
	}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(builder.Close)
	begun, err := builder.Begin(owner(ann), tpl, "app", []string{"app"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(s.dir, "records"), filepath.Join(s.dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	if err := builder.Refuse(ann, tpl, begun.ID, errors.New("there is nothing to build it from")); err != nil {
		t.Fatal(err)
	}
	if told != 1 {
		t.Errorf("%d builds were told of while the end of one was written", told)
	}
}
