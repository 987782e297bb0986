package main

import (
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

// terminal is the person's terminal while a command has it: raw, so that every
// key reaches the command.
type terminal struct {
	in, out int
	before  *term.State
}

// openTerminal puts the terminal into raw mode; nil, nil if stdin and stdout
// are not both terminals.
func openTerminal() (*terminal, error) {
	in, out := descriptor(os.Stdin), descriptor(os.Stdout)
	if !term.IsTerminal(in) || !term.IsTerminal(out) {
		return nil, nil //nolint:nilnil // no terminal is a good answer
	}
	before, err := term.MakeRaw(in)
	if err != nil {
		return nil, err
	}
	return &terminal{in: in, out: out, before: before}, nil
}

// restore undoes openTerminal; a nil terminal needs nothing.
func (t *terminal) restore() {
	if t != nil {
		_ = term.Restore(t.in, t.before) // gone with the terminal, if it fails
	}
}

// size is rows and columns.
func (t *terminal) size() (rows, cols uint16) {
	w, h, err := term.GetSize(t.out)
	if err != nil || w <= 0 || h <= 0 || w > 0xffff || h > 0xffff {
		return usualRows, usualCols
	}
	return uint16(h), uint16(w)
}

// termName is the TERM to hand on, if it looks like one.
func termName() string {
	name := os.Getenv("TERM")
	if regexp.MustCompile(`^[A-Za-z0-9.+_-]{1,64}$`).MatchString(name) {
		return name
	}
	return "xterm"
}

// readable reports whether reading stdin is possible without being stopped by
// the terminal: a background job may not read it.
func readable() bool {
	in := descriptor(os.Stdin)
	if !term.IsTerminal(in) {
		return true
	}
	group, err := unix.IoctlGetInt(in, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func descriptor(f *os.File) int {
	return int(f.Fd())
}
