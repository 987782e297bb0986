package ui

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Line is for how far something is: one line of a terminal that is written over. On what is no
// terminal, such as the log of a build, it is a line of its own, once in a quarter of a minute,
// so that a reader sees that something goes on. Not safe for concurrent use.
type Line struct {
	file  *os.File
	width int // 0: no terminal
	shown bool
	last  time.Time // when something was last written to what is no terminal, or the line was made
}

// NewLine is a line on a file.
func NewLine(f *os.File) *Line { return &Line{file: f, width: Width(f), last: time.Now()} }

// Show writes the line anew. The person who is shown it may not be there any more.
func (l *Line) Show(text string) {
	if l.width > 0 || time.Since(l.last) >= quiet {
		l.writeText(text)
	}
}

func (l *Line) writeText(text string) {
	if l.width == 0 {
		l.last = time.Now()
		_, _ = fmt.Fprintln(l.file, Printable(text))
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

const (
	// moment is how long something may take before a person wonders.
	moment = time.Second
	// quiet is how long nothing is written to what is no terminal.
	quiet = 15 * time.Second
)

// lineInterval is how often a line is written while nothing is known but that it goes on.
func (l *Line) lineInterval() time.Duration {
	if l.width == 0 {
		return quiet
	}
	return moment
}

// ShowWaiting does something, and where it takes more than a moment, tells on stderr what is
// being done and for how long: each second at a terminal, and else as Line does.
func ShowWaiting(what string, do func() error) error {
	return showWaiting(NewLine(os.Stderr), what, do)
}

func showWaiting(line *Line, what string, do func() error) error {
	stop := repeat(line, func() string { return what })
	defer stop()
	return do()
}

// repeat writes a line again and again, with how long it goes on, until stop is called, which
// takes the line away.
func repeat(line *Line, what func() string) (stop func()) {
	done := make(chan struct{})
	var watching sync.WaitGroup
	safego.In(&watching, func() {
		defer line.Clear()
		began := time.Now()
		tick := time.NewTicker(line.lineInterval())
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				line.writeText(fmt.Sprintf("%s (%s)", what(), time.Since(began).Round(time.Second)))
			}
		}
	})
	return func() {
		close(done)
		watching.Wait()
	}
}

// Steps shows the steps of something that takes minutes: one line that is written over at
// a terminal, a line each if it is verbose, else the one that it is at, as Line does.
type Steps struct {
	line    *Line
	verbose bool
	stop    func() // nil: nothing is repeated

	mu sync.Mutex // guards at
	at string     // the last step
}

// NewSteps shows steps on a file until Done.
func NewSteps(f *os.File, verbose bool) *Steps {
	s := &Steps{line: NewLine(f), verbose: verbose, at: "beginning"}
	if s.line.width == 0 && !verbose {
		s.stop = repeat(s.line, func() string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.at
		})
	}
	return s
}

// Show tells of one step; detail may be "" and percent 0.
func (s *Steps) Show(step, detail string, percent int) {
	text := step
	if percent > 0 {
		text = fmt.Sprintf("%s %d%%", text, percent)
	}
	if detail != "" {
		text += ": " + detail
	}
	switch {
	case s.verbose:
		_, _ = fmt.Fprintln(s.line.file, Printable(text)) // the work goes on when nobody watches
	case s.stop != nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.at = text
	default:
		s.line.Show(text)
	}
}

// Done takes the line away, and ends what repeats it. Call it once.
func (s *Steps) Done() {
	if s.stop != nil {
		s.stop()
		return
	}
	s.line.Clear()
}

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
