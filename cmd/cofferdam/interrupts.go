package main

import (
	"bytes"
	"sync"
	"time"
)

// The times by which presses of Ctrl-C are measured.
const (
	interruptWindow = 2 * time.Second       // presses further apart have nothing to do with each other
	interruptRepeat = 60 * time.Millisecond // closer ones come from a key held down
	interruptGrace  = time.Second           // for the command to show a reaction
	interruptSure   = 5                     // that many in a row mean the sandbox, whatever the command shows
)

// interruptVerdict is what a Ctrl-C means beyond the command, which gets it in any case.
type interruptVerdict int

const (
	forCommand interruptVerdict = iota
	doubtful                    // end the sandbox if the command shows no reaction within interruptGrace
	forSandbox
)

// interrupts decides when Ctrl-C means the sandbox. Without a terminal the
// second press within the window does. At a terminal, where a shell or an
// interpreter takes Ctrl-C for "drop this line", it does only if the command
// shows nothing in answer.
type interrupts struct {
	tty bool

	mu      sync.Mutex // guards what follows
	last    time.Time
	presses int
	reacted bool
}

// noteInterrupt notes one Ctrl-C.
func (i *interrupts) noteInterrupt(now time.Time) interruptVerdict {
	i.mu.Lock()
	defer i.mu.Unlock()
	since := now.Sub(i.last)
	if i.tty && i.presses > 0 && since < interruptRepeat {
		i.last = now
		return forCommand
	}
	if since > interruptWindow {
		i.presses = 0
	}
	i.last = now
	i.presses++
	reacted := i.reacted
	i.reacted = false
	switch {
	case i.presses == 1:
		return forCommand
	case !i.tty || i.presses >= interruptSure:
		return forSandbox
	case reacted:
		return forCommand
	}
	return doubtful
}

// output is told of what the command writes; the terminal's own echo of the
// key is no reaction.
func (i *interrupts) output(p []byte) {
	if len(bytes.Trim(p, "^C\r\n")) == 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reacted = true
}

// unanswered reports whether the last press was followed by no reaction.
func (i *interrupts) unanswered() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.reacted
}
