package ui

import (
	"io"
	"os"
	"regexp"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// The window that is assumed where a terminal does not tell.
const (
	usualRows = 24
	usualCols = 80
)

// Terminal is the person's terminal while a command has it: raw, so that every
// key reaches the command. A nil one is none.
type Terminal struct {
	in, out int
	before  *term.State
}

// OpenTerminal puts the terminal into raw mode; nil, nil if stdin and stdout
// are not both terminals.
func OpenTerminal() (*Terminal, error) {
	if !IsTerminal(os.Stdin) || !IsTerminal(os.Stdout) {
		return nil, nil //nolint:nilnil // no terminal is a good answer
	}
	in := descriptor(os.Stdin)
	before, err := term.MakeRaw(in)
	if err != nil {
		return nil, err
	}
	return &Terminal{in: in, out: descriptor(os.Stdout), before: before}, nil
}

// Restore undoes OpenTerminal; a nil terminal needs nothing.
func (t *Terminal) Restore() {
	if t != nil {
		_ = term.Restore(t.in, t.before) // gone with the terminal, if it fails
	}
}

// Size is rows and columns.
func (t *Terminal) Size() (rows, cols uint16) {
	w, h, err := term.GetSize(t.out)
	if err != nil || w <= 0 || h <= 0 || w > 0xffff || h > 0xffff {
		return usualRows, usualCols
	}
	return uint16(h), uint16(w)
}

var terminalName = regexp.MustCompile(`^[A-Za-z0-9.+_-]{1,64}$`)

// TermName is the TERM to hand on, if it looks like one.
func TermName() string {
	name := os.Getenv("TERM")
	if terminalName.MatchString(name) {
		return name
	}
	return "xterm"
}

// Readable reports whether reading stdin is possible without being stopped by
// the terminal: a background job may not read it.
func Readable() bool {
	if !IsTerminal(os.Stdin) {
		return true
	}
	group, err := unix.IoctlGetInt(descriptor(os.Stdin), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(descriptor(f)) }

// Width is how wide lines on w may be; 0 if w is no terminal, and whoever reads it has
// use for all of it.
func Width(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !IsTerminal(file) {
		return 0
	}
	if cols, _, err := term.GetSize(descriptor(file)); err == nil && cols > 0 {
		return cols
	}
	return usualCols
}

// Coloured reports whether w takes colours: a terminal that has them, of somebody who did
// not set NO_COLOR.
func Coloured(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && Width(w) > 0
}

func descriptor(f *os.File) int {
	return int(f.Fd())
}
