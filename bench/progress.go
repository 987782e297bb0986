package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// progress tells on stderr what is being done: at a terminal by one line that is
// written over, elsewhere, a log perhaps, by a line now and then.
type progress struct {
	out      *os.File
	terminal bool
	began    time.Time
	told     time.Time // when the last line was written to what is no terminal
}

// progressPause is how often a log hears of rounds.
const progressPause = 15 * time.Second

func newProgress(out *os.File) *progress {
	return &progress{out: out, terminal: term.IsTerminal(int(out.Fd())), began: time.Now()}
}

// say tells what is done now: what is said next takes its place.
func (p *progress) say(format string, args ...any) {
	switch {
	case p.terminal:
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K"+format, args...) // it is only a comfort
	case time.Since(p.told) >= progressPause:
		p.line(format, args...)
	}
}

// line tells something that stays, with the time since the start.
func (p *progress) line(format string, args ...any) {
	p.clear()
	_, _ = fmt.Fprintf(p.out, "%6s  %s\n", time.Since(p.began).Round(time.Second), fmt.Sprintf(format, args...)) // as above
	p.told = time.Now()
}

// round says which of how many rounds begins.
func (p *progress) round(what string, i, n int) { p.say("%s: %d of %d", what, i+1, n) }

func (p *progress) clear() {
	if p.terminal {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K") // as above
	}
}
