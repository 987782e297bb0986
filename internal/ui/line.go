package ui

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
)

// Line is one line of a terminal that is written over, for how far something is. On what
// is no terminal it shows nothing.
type Line struct {
	file  *os.File
	width int // 0: no terminal
	shown bool
}

// NewLine is a line on a file.
func NewLine(f *os.File) *Line { return &Line{file: f, width: Width(f)} }

// Show writes the line anew. Whoever is shown it may not be there any more.
func (l *Line) Show(text string) {
	if l.width == 0 {
		return
	}
	cells := []rune(Printable(text))
	_, _ = fmt.Fprintf(l.file, "\r\x1b[K%s", string(cells[:min(len(cells), l.width-1)]))
	l.shown = true
}

// Clear takes the line away.
func (l *Line) Clear() {
	if l.shown {
		_, _ = fmt.Fprint(l.file, "\r\x1b[K")
		l.shown = false
	}
}

// moment is how long something may take before a person wonders.
const moment = time.Second

// ShowWaiting does something, and where it takes more than a moment and somebody
// sits at a terminal, tells on stderr what is being done and for how long.
func ShowWaiting(what string, do func() error) error {
	line := NewLine(os.Stderr)
	if line.width == 0 {
		return do()
	}
	done := make(chan struct{})
	var watching sync.WaitGroup
	errand.In(&watching, func() {
		defer line.Clear()
		began := time.Now()
		tick := time.NewTicker(moment)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				line.Show(fmt.Sprintf("%s (%s)", what, time.Since(began).Round(time.Second)))
			}
		}
	})
	err := do()
	close(done)
	watching.Wait()
	return err
}

// Steps shows the steps of something that takes minutes: one line that is written over at
// a terminal, a line each if it is verbose, else nothing.
type Steps struct {
	line    *Line
	verbose bool
}

// NewSteps shows steps on a file.
func NewSteps(f *os.File, verbose bool) *Steps { return &Steps{NewLine(f), verbose} }

// Show tells of one step; detail may be "" and percent 0.
func (s *Steps) Show(step, detail string, percent int) {
	text := step
	if percent > 0 {
		text = fmt.Sprintf("%s %d%%", text, percent)
	}
	if detail != "" {
		text += ": " + detail
	}
	if s.verbose {
		_, _ = fmt.Fprintln(s.line.file, Printable(text)) // the work goes on when nobody watches
		return
	}
	s.line.Show(text)
}

// Done takes the line away.
func (s *Steps) Done() { s.line.Clear() }

// Often wraps what is told many times how far something is: it passes one call on in a
// fifth of a second, and none in the first second.
func Often(show func(done, all int64)) func(done, all int64) {
	began, last := time.Now(), time.Time{}
	return func(done, all int64) {
		now := time.Now()
		if now.Sub(began) < moment || now.Sub(last) < moment/5 || all == 0 {
			return
		}
		last = now
		show(done, all)
	}
}
