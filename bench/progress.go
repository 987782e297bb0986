package main

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// progress is one line on a terminal that says what is being done. Where there
// is no terminal it says nothing.
type progress struct {
	out *os.File // nil: quiet
}

func newProgress(out *os.File) *progress {
	if !term.IsTerminal(int(out.Fd())) {
		return &progress{}
	}
	return &progress{out: out}
}

// say replaces the line.
func (p *progress) say(format string, args ...any) {
	if p.out != nil {
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K"+format, args...) // it is only a comfort
	}
}

// round says which of how many rounds begins.
func (p *progress) round(what string, i, n int) { p.say("%s: %d of %d", what, i+1, n) }

func (p *progress) clear() { p.say("") }
