package transfers

import (
	"encoding/binary"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// frames follows the frames of a connection through bytes that come in whatever pieces. It
// checks nothing: whoever reads them refuses what breaks the rules, and reads no further.
type frames struct {
	header [channel.HeaderSize]byte
	have   int    // bytes of header
	size   uint32 // bytes of the payload
	left   uint32 // of these, those that are still to come
	reply  []byte // the payload so far, of a FrameReply

	data func(kind channel.FrameType, part []byte) // takes a part of a payload
	end  func(kind channel.FrameType)              // takes the end of a frame
}

func (f *frames) passBytes(p []byte) {
	for len(p) > 0 {
		if f.have < len(f.header) {
			n := copy(f.header[f.have:], p)
			f.have, p = f.have+n, p[n:]
			if f.have < len(f.header) {
				return
			}
			f.size, f.reply = binary.BigEndian.Uint32(f.header[1:]), f.reply[:0]
			f.left = f.size
		}
		n := min(uint64(f.left), uint64(len(p)))
		f.takePart(p[:n])
		f.left, p = f.left-uint32(n), p[n:]
		if f.left == 0 {
			f.have = 0
			f.end(f.kindOfFrame())
		}
	}
}

func (f *frames) kindOfFrame() channel.FrameType { return channel.FrameType(f.header[0]) }

func (f *frames) takePart(p []byte) {
	if f.kindOfFrame() == channel.FrameReply && len(f.reply)+len(p) <= channel.MaxJSON {
		f.reply = append(f.reply, p...)
	}
	f.data(f.kindOfFrame(), p)
}
