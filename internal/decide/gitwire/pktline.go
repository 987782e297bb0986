package gitwire

import (
	"fmt"
	"io"
	"strconv"
)

// maxLine is the longest pkt-line, with its length.
const maxLine = 65520

// flush ends a list of pkt-lines.
const flush = "0000"

// Malformed is a push that is not read.
type Malformed struct{ What string }

// Error implements error.
func (m *Malformed) Error() string { return m.What }

func malformed(format string, args ...any) error { return &Malformed{fmt.Sprintf(format, args...)} }

// pktLines reads pkt-lines, and keeps what it has read.
type pktLines struct {
	from io.Reader
	most int // bytes that are read at most
	said []byte
}

// takeBytes reads so many bytes.
func (l *pktLines) takeBytes(n int) ([]byte, error) {
	if len(l.said)+n > l.most {
		return nil, malformed("the push has more refs and options than a person is asked about (%d bytes)", l.most)
	}
	start := len(l.said)
	l.said = append(l.said, make([]byte, n)...)
	read, err := io.ReadFull(l.from, l.said[start:])
	l.said = l.said[:start+read]
	if err != nil {
		return nil, err
	}
	return l.said[start:], nil
}

// nextLine reads a line; end tells that it is a flush, which has none.
func (l *pktLines) nextLine() (line []byte, end bool, err error) {
	head, err := l.takeBytes(4)
	if err != nil {
		return nil, false, err
	}
	length, err := strconv.ParseUint(string(head), 16, 16)
	switch {
	case err != nil: // also with a sign
		return nil, false, malformed("a line of the push has no length")
	case length == 0:
		return nil, true, nil
	case length <= 4 || length > maxLine:
		return nil, false, malformed("a line of the push has the length %d", length)
	}
	line, err = l.takeBytes(int(length) - 4)
	return line, false, err
}

// appendLine appends a pkt-line.
func appendLine(b []byte, text string) []byte {
	return append(fmt.Appendf(b, "%04x", len(text)+4), text...)
}
