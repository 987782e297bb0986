package main

import (
	"fmt"
	"io"
	"sync"
)

// voice is stderr while a command runs: the command's own bytes, verbatim, and
// our lines between them, each on a line of its own.
type voice struct {
	w io.Writer

	mu   sync.Mutex // guards what follows, and writes to w
	raw  bool       // the terminal does not return the carriage by itself
	open bool       // the command has begun a line and not ended it
}

// Write passes on what the command writes to stderr.
func (v *voice) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.follow(p)
	return v.w.Write(p)
}

// beside returns a writer to out that shares the terminal with this voice.
func (v *voice) beside(out io.Writer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		v.mu.Lock()
		v.follow(p)
		v.mu.Unlock()
		return out.Write(p)
	})
}

func (v *voice) follow(p []byte) {
	if len(p) > 0 {
		v.open = p[len(p)-1] != '\n'
	}
}

// setRaw tells whether the terminal is in raw mode.
func (v *voice) setRaw(raw bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.raw = raw
}

// say writes one line with our name in front. The text may hold anything.
func (v *voice) say(format string, args ...any) {
	v.line("cofferdam: " + printable(fmt.Sprintf(format, args...)))
}

// line writes one line as it is: it must be printable.
func (v *voice) line(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	end := "\n"
	if v.raw {
		end = "\r\n"
	}
	if v.open {
		text = end + text
		v.open = false
	}
	_, _ = io.WriteString(v.w, text+end) // nobody is left to be told
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
