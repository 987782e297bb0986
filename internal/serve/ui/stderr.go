package ui

import (
	"fmt"
	"io"
	"sync"
)

// Stderr is stderr while a command runs: the command's own bytes, verbatim, and
// our lines between them, each on a line of its own.
type Stderr struct {
	w io.Writer

	mu   sync.Mutex // guards what follows, and writes to w
	raw  bool       // the terminal does not return the carriage by itself
	open bool       // the command has begun a line and not ended it
}

// NewStderr writes to w.
func NewStderr(w io.Writer) *Stderr { return &Stderr{w: w} }

// Width is as Width.
func (s *Stderr) Width() int { return Width(s.w) }

// Write passes on what the command writes to stderr.
func (s *Stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followOutput(p)
	return s.w.Write(p)
}

// Beside returns a writer to out that shares its terminal.
func (s *Stderr) Beside(out io.Writer) io.Writer {
	return WriterFunc(func(p []byte) (int, error) {
		s.mu.Lock()
		s.followOutput(p)
		s.mu.Unlock()
		return out.Write(p)
	})
}

func (s *Stderr) followOutput(p []byte) {
	if len(p) > 0 {
		s.open = p[len(p)-1] != '\n'
	}
}

// SetRaw notes whether the terminal is in raw mode.
func (s *Stderr) SetRaw(raw bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw = raw
}

// Say writes one line with our name in front. The text may hold anything.
func (s *Stderr) Say(format string, args ...any) {
	s.Line("cofferdam: " + Printable(fmt.Sprintf(format, args...)))
}

// Line writes one line as it is: it must be printable.
func (s *Stderr) Line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := "\n"
	if s.raw {
		end = "\r\n"
	}
	if s.open {
		text = end + text
		s.open = false
	}
	_, _ = io.WriteString(s.w, text+end) // nobody is left to be told
}

// WriterFunc is a function as a writer.
type WriterFunc func([]byte) (int, error)

// Write calls the function.
func (f WriterFunc) Write(p []byte) (int, error) { return f(p) }
