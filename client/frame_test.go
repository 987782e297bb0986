package client

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// TestFramesAreTheChannels: the numbers repeated here are the daemon's.
func TestFramesAreTheChannels(t *testing.T) {
	t.Parallel()
	for ours, theirs := range map[int]channel.FrameType{
		frameStdin: channel.FrameStdin, frameStdout: channel.FrameStdout, frameStderr: channel.FrameStderr, frameExit: channel.FrameExit,
		frameResize: channel.FrameResize, frameSignal: channel.FrameSignal, frameGap: channel.FrameGap,
	} {
		if ours != int(theirs) {
			t.Errorf("frame %d is the channel's %d", ours, theirs)
		}
	}
	if headerSize != channel.HeaderSize || maxPayload != channel.MaxPayload {
		t.Error("the sizes are not the channel's")
	}
}

// FuzzReadFrame: whatever the other side sends, a frame is read as it was
// written or there is an error.
func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{4, 0, 0, 0, 2, 'h', 'i'})
	f.Add([]byte{4, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{6, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, buf := bytes.NewReader(data), make([]byte, maxPayload)
		var again bytes.Buffer
		for {
			kind, payload, err := readFrame(r, buf)
			if err != nil {
				if errors.Is(err, io.EOF) && r.Len() == 0 && again.Len() > len(data) {
					t.Fatal("more was read than was there")
				}
				break
			}
			if err := writeFrame(&again, kind, payload); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(data, again.Bytes()) {
			t.Fatalf("%x was read as %x", data, again.Bytes())
		}
	})
}
