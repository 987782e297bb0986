package gateway

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
)

// phrase replaces the reason phrase of an HTTP/1.1 answer, which net/http does
// not let a handler choose and pip prints. The handler sets it before it
// writes; net/http has flushed the answer before by then, so the next write to
// the connection begins with the status line. Should it ever not, the answer
// goes out with the standard phrase.
type phrase struct {
	next atomic.Pointer[statusLine]
}

type statusLine struct {
	status int
	phrase string
}

func (p *phrase) set(status int, text string) { p.next.Store(&statusLine{status, text}) }

func (p *phrase) write(w io.Writer, b []byte) (int, error) {
	line := p.next.Swap(nil)
	if line == nil {
		return w.Write(b)
	}
	begin := []byte("HTTP/1.1 " + strconv.Itoa(line.status) + " ")
	standard := append(bytes.Clone(begin), http.StatusText(line.status)+"\r\n"...)
	rest, ok := bytes.CutPrefix(b, standard)
	if !ok {
		return w.Write(b)
	}
	ours := append(append(begin, line.phrase...), "\r\n"...)
	n, err := w.Write(append(ours, rest...))
	if err != nil {
		// How much of b that was only matters to a caller that would go on.
		return min(max(0, n-len(ours)+len(standard)), len(b)), err
	}
	return len(b), nil
}
