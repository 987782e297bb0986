package channel

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/hashicorp/yamux"
)

// The multiplexer's own framing, as far as guard must understand it: version,
// type, two bytes flags, four bytes stream id, four bytes length; after a data
// header, length bytes.
const (
	muxHeaderSize = 12
	muxVersion    = 0
	muxData       = 0
	muxPing       = 2
	muxGoAway     = 3
	muxSYN        = 1
	muxFIN        = 4
	muxRST        = 8
)

// guard inspects what a guest sends before the multiplexer does, for what the multiplexer would let
// a hostile guest do to the host: it starts a goroutine for every ping, and keeps every stream that
// is never closed. Pings are refused (keep-alive is off, nobody needs one), streams are counted,
// and a stream id must be of the guest's own, even half. The bytes that the streams hold are
// counted (held), and between two frames it waits until there is room for more.
type guard struct {
	io.ReadWriteCloser
	held    *sessionMemory
	session atomic.Pointer[yamux.Session]
	// Owned by the multiplexer's one reading goroutine.
	hdr  [muxHeaderSize]byte
	have int    // bytes of hdr filled
	skip uint32 // payload bytes still to pass
	// Owned by the multiplexer's one writing goroutine.
	body int64 // payload bytes of the host's still to be written
}

// Read reads from the connection; a violation is an error instead of the bytes.
func (g *guard) Read(p []byte) (int, error) {
	bad := g.held.judgeSession()
	if _, full := g.held.isFull(); full || bad != nil {
		switch {
		case g.skip > 0: // the multiplexer may hold a stream's lock: to the end of this frame first
			p = p[:min(uint64(len(p)), uint64(g.skip))]
		case g.have > 0:
			p = p[:min(len(p), muxHeaderSize-g.have)]
		case bad != nil:
			return 0, bad
		default:
			g.held.awaitRoom()
		}
	}
	n, err := g.ReadWriteCloser.Read(p)
	if bad := g.inspect(p[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

// Write writes a frame's header, or all of its payload, as the multiplexer does. A stream that it
// opens is counted before the guest can answer, and what it refuses no longer.
func (g *guard) Write(p []byte) (int, error) {
	switch {
	case g.body > 0:
		g.body -= int64(len(p))
	case len(p) == muxHeaderSize:
		kind, flags := p[1], binary.BigEndian.Uint16(p[2:])
		id, length := binary.BigEndian.Uint32(p[4:]), binary.BigEndian.Uint32(p[8:])
		if kind == muxData {
			g.body = int64(length)
		}
		if kind < muxPing && flags&muxSYN != 0 {
			g.held.starts(id)
		}
		if kind < muxPing && flags&muxRST != 0 {
			g.held.noteRefused(id)
		}
	}
	return g.ReadWriteCloser.Write(p)
}

func (g *guard) inspect(p []byte) error {
	for len(p) > 0 {
		if g.skip > 0 {
			n := min(uint64(g.skip), uint64(len(p)))
			g.skip -= uint32(n)
			p = p[n:]
			continue
		}
		n := copy(g.hdr[g.have:], p)
		g.have += n
		p = p[n:]
		if g.have < muxHeaderSize {
			return nil
		}
		g.have = 0
		if err := g.header(); err != nil {
			return err
		}
	}
	return nil
}

func (g *guard) header() error {
	kind, flags := g.hdr[1], binary.BigEndian.Uint16(g.hdr[2:])
	id, length := binary.BigEndian.Uint32(g.hdr[4:]), binary.BigEndian.Uint32(g.hdr[8:])
	if g.hdr[0] != muxVersion || kind > muxGoAway {
		return &violation{"what came is not the multiplexer's framing"}
	}
	if kind == muxPing && flags&muxSYN != 0 {
		return &violation{"a guest may not ping"}
	}
	if kind < muxPing && flags&muxSYN != 0 {
		if id == 0 || id%2 != 0 {
			return &violation{fmt.Sprintf("stream id %d is not the guest's to open", id)}
		}
		if s := g.session.Load(); s != nil && s.NumStreams() >= MaxStreams {
			return &violation{fmt.Sprintf("more than %d streams", MaxStreams)}
		}
		if err := g.held.begins(id); err != nil {
			return err
		}
	}
	if kind == muxData {
		g.skip = length
		g.held.takeFrame(id, length)
	}
	if kind < muxPing && flags&(muxFIN|muxRST) != 0 {
		g.held.finished(id)
	}
	return nil
}

// violation is why a session was ended.
type violation struct{ problem string }

func (v *violation) Error() string { return "the guest broke the channel's rules: " + v.problem }
