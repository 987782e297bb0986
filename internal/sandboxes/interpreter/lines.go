package interpreter

import (
	"bytes"
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// lineBuffer cuts what a kernel writes into lines. A line grows only as its bytes come, and past
// heldLine only where there is room: take is asked for each further byte and give tells that
// all of it is free again.
type lineBuffer struct {
	take func(n int) error // may be nil
	give func()            // may be nil
	line []byte
	took bool
	skip bool // up to the end of a line whose beginning is not known
}

// errTooLong: a line is longer than a message may be.
var errTooLong = errors.New("the kernel sent a message that is too long")

// feedBytes takes bytes and hands out the whole lines, without their ends. A line is valid until
// each returns.
func (l *lineBuffer) feedBytes(data []byte, each func(line []byte) error) error {
	for len(data) > 0 {
		part, rest, whole := bytes.Cut(data, []byte("\n"))
		data = rest
		if !l.skip {
			if err := l.growLine(part); err != nil {
				return err
			}
		}
		if !whole {
			return nil
		}
		if l.skip {
			l.skip = false
			continue
		}
		line := l.line
		l.line = nil
		err := each(line)
		if l.took && l.give != nil {
			l.give()
		}
		l.took = false
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lineBuffer) growLine(part []byte) error {
	size := len(l.line) + len(part)
	if size > maxLine {
		return errTooLong
	}
	if size > heldLine && l.take != nil {
		if err := l.take(len(part)); err != nil {
			return fault.Wrap(fault.ErrExhausted, err, "there is no room for a message of more than %d bytes now", len(l.line))
		}
		l.took = true
	}
	l.line = append(l.line, part...)
	return nil
}

// dropLine drops a line of which bytes are missing.
func (l *lineBuffer) dropLine() { l.line, l.skip = nil, true }

// divider stands in a message behind each control character that JSON spells with a letter or a
// digit at its end, such as \n. Without it scanning would take that letter for the beginning
// of the word behind it, and find no number at the beginning of a line; and of an address it
// would redact the letter, too, which leaves no message.
const divider = 0x7f

// unmark takes the dividers out of a message, in place.
func unmark(line []byte) []byte {
	if bytes.IndexByte(line, divider) < 0 { // of one that is long, such as a picture
		return line
	}
	out := line[:0]
	for i := 0; i < len(line); {
		n, control := escape(line[i:]) // before out overwrites it
		out = append(out, line[i:i+n]...)
		if i += n; control && i < len(line) && line[i] == divider {
			i++
		}
	}
	return out
}

// escape is how long what a text begins with is, one byte or an escape, and whether that is
// one of a control character.
func escape(text []byte) (n int, control bool) {
	switch {
	case text[0] != '\\' || len(text) < 2:
		return 1, false
	case text[1] != 'u':
		return 2, bytes.IndexByte([]byte("bfnrt"), text[1]) >= 0
	case len(text) < 6:
		return len(text), false
	}
	return 6, text[2] == '0' && text[3] == '0' && text[4] <= '1'
}
