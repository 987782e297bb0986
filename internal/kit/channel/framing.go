package channel

import "encoding/binary"

// framing follows the multiplexer's own framing over a stream of bytes,
// whatever pieces these come in, to know where a frame ends.
type framing struct {
	hdr  [muxHeaderSize]byte
	have int    // bytes of hdr filled
	skip uint32 // payload bytes still to pass
}

// leftOfFrame is how many bytes are sure to belong to the frame that is under way; 0
// between two frames.
func (f *framing) leftOfFrame() int {
	switch {
	case f.skip > 0:
		return int(f.skip)
	case f.have > 0:
		return muxHeaderSize - f.have
	default:
		return 0
	}
}

// passFrames follows p and returns how much of it is frames. It stops between two of
// them, at a byte that can't be the begin of one.
func (f *framing) passFrames(p []byte) int {
	for at := 0; at < len(p); {
		if f.leftOfFrame() == 0 && p[at] != muxVersion {
			return at
		}
		if f.skip > 0 {
			n := min(uint64(f.skip), uint64(len(p)-at))
			f.skip -= uint32(n)
			at += int(n)
			continue
		}
		n := copy(f.hdr[f.have:], p[at:])
		f.have += n
		at += n
		if f.have < muxHeaderSize {
			continue // p is at its end
		}
		f.have = 0
		if f.hdr[1] == muxData {
			f.skip = binary.BigEndian.Uint32(f.hdr[8:])
		}
	}
	return len(p)
}
