package client

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The frames of an attachment: one byte type, four bytes big-endian length,
// payload. The numbers are those of the daemon's channel package (a test
// compares them), repeated here so that a client needs nothing but this.
const (
	frameStdin  = 3 // empty payload: end of input
	frameStdout = 4
	frameStderr = 5
	frameExit   = 6 // JSON api.Exit; the last frame
	frameResize = 7 // JSON window
	frameSignal = 8 // JSON signal
	frameGap    = 9 // JSON gap

	headerSize = 5
	maxPayload = 64 << 10
)

type window struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

type signal struct {
	Name string `json:"name"`
	Tree bool   `json:"tree,omitempty"`
}

type gap struct {
	Bytes int64 `json:"bytes"`
}

// readFrame reads one frame into buf, which must hold maxPayload bytes; the
// payload is a part of it. Where the connection ends, cleanly or not, the error
// is ErrLost.
func readFrame(r io.Reader, buf []byte) (kind byte, payload []byte, err error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	size := binary.BigEndian.Uint32(header[1:])
	if size > maxPayload {
		return 0, nil, fmt.Errorf("the daemon sent a frame of %d bytes; the limit is %d", size, maxPayload)
	}
	if _, err := io.ReadFull(r, buf[:size]); err != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	return header[0], buf[:size], nil
}

// writeFrame writes one frame with one Write, so that frames of several
// goroutines under one lock never mix.
func writeFrame(w io.Writer, kind byte, payload []byte) error {
	frame := make([]byte, headerSize+len(payload))
	frame[0] = kind
	binary.BigEndian.PutUint32(frame[1:], uint32(len(payload))) // callers split at maxPayload
	copy(frame[headerSize:], payload)
	_, err := w.Write(frame)
	return err
}
