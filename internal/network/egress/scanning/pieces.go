package scanning

import (
	"errors"
	"io"
	"sort"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
)

// joined is a body in pieces with their lengths, in which a value may lie over two of them. The
// possible beginning of a value waits for the rest: no client of such an upload waits for an answer
// before its end. One goroutine reads.
type joined struct {
	io.ReadCloser
	look    *look
	scanner *dlp.Scanner
	chunks  requestparts.Chunks

	raw   []byte  // read, and not given
	upto  []int64 // for each byte of raw: how many bytes of pieces there are up to it
	total int64   // bytes of pieces that were read
	clear int64   // of them are decided
	loose bool    // it is none after all, and may pass as it is
	err   error   // after raw
}

// Read implements io.Reader.
func (j *joined) Read(p []byte) (int, error) {
	for {
		n := sort.Search(len(j.upto), func(i int) bool { return j.upto[i] > j.clear })
		if j.err != nil {
			if !errors.Is(j.err, io.EOF) {
				return 0, j.err
			}
			n = len(j.raw)
		}
		if n > 0 {
			n = copy(p, j.raw[:n])
			j.raw, j.upto = j.raw[n:], j.upto[n:]
			return n, nil
		}
		if j.err != nil {
			return 0, j.err
		}
		j.readMore()
	}
}

// readMore reads more, and has it looked through.
func (j *joined) readMore() {
	buf := make([]byte, pieceSize)
	n, err := j.ReadCloser.Read(buf)
	if j.loose {
		j.raw, j.upto, j.err = append(j.raw, buf[:n]...), append(j.upto, make([]int64, n)...), err
		return
	}
	before := j.total
	text := j.chunks.Take(buf[:n], func(n int) { j.upto = append(j.upto, before+int64(n)) })
	j.raw, j.total = append(j.raw, buf[:n]...), before+int64(len(text))
	out, found := j.scanner.Write(text)
	if j.clear += int64(len(out)); err != nil {
		_, more := j.scanner.Close()
		found = append(found, more...)
	}
	if refused := j.look.tellFindings("body", found); refused != nil {
		j.failWith(refused)
		return
	}
	if j.chunks.Broken() {
		if refused := j.look.unseen("it is not in the pieces (aws-chunked) that it says"); refused != nil {
			j.failWith(refused)
			return
		}
		j.loose, j.clear = true, j.total // what is written was looked through
	}
	j.err = err
}

func (j *joined) failWith(err error) { j.raw, j.upto, j.err = nil, nil, err }

// parted is a body of parts that is too long to be read whole. A part that is encoded can't be
// looked into while it passes. One goroutine reads.
type parted struct {
	io.ReadCloser
	look  *look
	heads requestparts.Heads
	told  bool // that it can't
	err   error
}

// Read implements io.Reader.
func (t *parted) Read(p []byte) (int, error) {
	if t.err != nil {
		return 0, t.err
	}
	n, err := t.ReadCloser.Read(p)
	if coding := t.heads.Encoded(p[:n]); coding != "" && !t.told {
		t.told = true
		if t.err = t.look.unseen("a part of it is encoded (" + coding + "), and it has more than " + sizeText(maxEncoded)); t.err != nil {
			return 0, t.err
		}
	}
	return n, err
}
