package guest

import (
	"bytes"
	"io"
	"sync"
)

// inputLimit is how much input for a command waits in the agent; past it the host is held
// back. Signals and sizes do not wait behind it: they have a call of their own (control.go).
const inputLimit = 4 << 20

// input carries a command's stdin from the stream's reader to its pipe.
type input struct {
	to        io.WriteCloser
	endOfFile []byte // typed at the end instead of closing; for terminals

	mu      sync.Mutex // guards the rest
	change  *sync.Cond
	waiting [][]byte
	size    int
	ended   bool // the host sent the end
	broken  bool // the command takes no more
}

func newInput(to io.WriteCloser, endOfFile []byte) *input {
	in := &input{to: to, endOfFile: endOfFile}
	in.change = sync.NewCond(&in.mu)
	return in
}

// pushData takes a copy of data; an empty one is the end. It blocks at the limit.
func (in *input) pushData(data []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.size >= inputLimit && !in.broken {
		in.change.Wait()
	}
	if in.broken || in.ended {
		return
	}
	if len(data) == 0 {
		in.ended = true
		data = in.endOfFile
	}
	if len(data) > 0 {
		in.waiting = append(in.waiting, bytes.Clone(data))
		in.size += len(data)
	}
	in.change.Broadcast()
}

// stopInput throws away what waits and makes run return.
func (in *input) stopInput() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.broken, in.waiting, in.size = true, nil, 0
	in.change.Broadcast()
}

// writeInput writes to the command until the end or stop.
func (in *input) writeInput() {
	for {
		data, ok := in.nextData()
		if !ok {
			return
		}
		if _, err := in.to.Write(data); err != nil {
			in.stopInput() // the command closed its stdin, or is gone
			return
		}
	}
}

// nextData waits for data; at the end it closes the pipe.
func (in *input) nextData() ([]byte, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.waiting) == 0 && !in.ended && !in.broken {
		in.change.Wait()
	}
	if in.broken {
		return nil, false
	}
	if len(in.waiting) == 0 {
		if in.endOfFile == nil {
			_ = in.to.Close()
		}
		return nil, false
	}
	data := in.waiting[0]
	in.waiting = in.waiting[1:]
	in.size -= len(data)
	in.change.Broadcast()
	return data, true
}
