// Package tooltest is the suite that every runner of tools passes.
package tooltest

import (
	"context"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Behaviour is what a tool of the suite does.
type Behaviour string

// The behaviours.
const (
	Echo    Behaviour = "echo"    // answers its arguments, byte by byte
	Deaf    Behaviour = "deaf"    // answers "ok" and reads nothing
	Silent  Behaviour = "silent"  // answers nothing
	Fail    Behaviour = "fail"    // writes SECRET wherever it can, and fails
	Flood   Behaviour = "flood"   // never stops to answer
	Hang    Behaviour = "hang"    // tells that it was begun, and never answers
	Binary  Behaviour = "binary"  // answers bytes 0xff 0x00
	WhoAsks Behaviour = "whoasks" // answers the run and the sandbox, with a space between
)

// Secret is what Fail writes, and no caller may read.
const Secret = "S3CRET-of-the-host"

// Maker makes a runner of a behaviour. begun is closed when a tool that hangs was begun.
type Maker func(t *testing.T, b Behaviour) (r tool.Runner, begun <-chan struct{})

func callWith(arguments string) tool.Call {
	return tool.Call{Tool: "t", Run: "run-1", Sandbox: "sb-1", Arguments: arguments, MaxOutput: 100_000}
}

// Suite is all that a runner has to do.
func Suite(t *testing.T, begin Maker) {
	t.Helper()
	t.Run("arguments arrive and come back byte by byte", func(t *testing.T) {
		r, _ := begin(t, Echo)
		for _, arguments := range []string{`{}`, `{"a":"$(id) 'x' \"y\" \\ é 漢 -rf --"}`, `{"a":"` + strings.Repeat("x", 60_000) + `"}`} {
			got, err := r.Run(t.Context(), callWith(arguments))
			if err != nil || string(got) != arguments {
				t.Errorf("%.80s came back as %.80q, %v", arguments, got, err)
			}
		}
	})
	t.Run("its definition is of its work", func(t *testing.T) {
		one, _ := begin(t, Echo)
		other, _ := begin(t, Deaf)
		again := one.Definition()
		if again == "" || one.Definition() != again || one.Definition() == other.Definition() {
			t.Errorf("%q, %q", one.Definition(), other.Definition())
		}
	})
	t.Run("one that does not read its arguments", func(t *testing.T) {
		r, _ := begin(t, Deaf)
		if got, err := r.Run(t.Context(), callWith(`{"a":"`+strings.Repeat("x", 64_000)+`"}`)); err != nil || string(got) != "ok" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("one that answers nothing", func(t *testing.T) {
		r, _ := begin(t, Silent)
		if got, err := r.Run(t.Context(), callWith(`{}`)); err != nil || len(got) != 0 {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("bytes that are no text", func(t *testing.T) {
		r, _ := begin(t, Binary)
		if got, err := r.Run(t.Context(), callWith(`{}`)); err != nil || string(got) != "\xff\x00" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("who calls is told", func(t *testing.T) {
		r, _ := begin(t, WhoAsks)
		if got, err := r.Run(t.Context(), callWith(`{}`)); err != nil || strings.TrimSpace(string(got)) != "run-1 sb-1" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("a failure keeps what the tool said for the operator", func(t *testing.T) { failure(t, begin) })
	t.Run("what never stops is cut", func(t *testing.T) {
		r, _ := begin(t, Flood)
		got, err := r.Run(t.Context(), callWith(`{}`))
		if f, ok := err.(*tool.Failure); got != nil || !ok || !strings.Contains(f.Sentence, "more than") { //nolint:errorlint // the contract is this type
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
	t.Run("what hangs ends with its call", func(t *testing.T) {
		r, begun := begin(t, Hang)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		safego.Go(func() {
			select {
			case <-begun:
				cancel()
			case <-ctx.Done():
			}
		})
		if got, err := r.Run(ctx, callWith(`{}`)); err == nil || got != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("a call that is over begins nothing that lasts", func(t *testing.T) {
		r, _ := begin(t, Hang)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got, err := r.Run(ctx, callWith(`{}`)); err == nil || got != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func failure(t *testing.T, begin Maker) {
	t.Helper()
	r, _ := begin(t, Fail)
	got, err := r.Run(t.Context(), callWith(`{}`))
	f, ok := err.(*tool.Failure) //nolint:errorlint // the contract is this type
	if !ok || got != nil {
		t.Fatalf("%q, %v", got, err)
	}
	if f.Sentence == "" || strings.Contains(f.Sentence, Secret) {
		t.Errorf("whoever called is told: %s", f.Sentence)
	}
}
