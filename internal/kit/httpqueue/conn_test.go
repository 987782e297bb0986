package httpqueue

import (
	"bytes"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// sink is a connection of which only what is written counts.
type sink struct {
	net.Conn
	got bytes.Buffer
}

func (s *sink) Write(b []byte) (int, error) { return s.got.Write(b) }

// TestWhatAServerSaysOfItsClient is heard however its frames are cut, and what is written
// arrives as it was.
func TestWhatAServerSaysOfItsClient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say  func(f *http2.Framer) error
		told int
	}{
		"a reset":           {func(f *http2.Framer) error { return f.WriteRSTStream(1, http2.ErrCodeProtocol) }, 1},
		"its own fault":     {func(f *http2.Framer) error { return f.WriteRSTStream(1, http2.ErrCodeInternal) }, 0},
		"the end":           {func(f *http2.Framer) error { return f.WriteGoAway(1, http2.ErrCodeNo, []byte("bye")) }, 0},
		"what is no header": {func(f *http2.Framer) error { return f.WriteGoAway(1, http2.ErrCodeCompression, []byte("bye")) }, 1},
		"too many resets":   {func(f *http2.Framer) error { return f.WriteGoAway(1, http2.ErrCodeEnhanceYourCalm, nil) }, 1},
		"data that look so": {func(f *http2.Framer) error {
			return f.WriteData(1, true, []byte{0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 1})
		}, 0},
	} {
		var said bytes.Buffer
		f := http2.NewFramer(&said, nil)
		for _, one := range []func() error{func() error { return f.WriteSettings() }, func() error { return answer(f) }, func() error { return c.say(f) }, f.WriteSettingsAck, func() error { return f.WriteData(1, true, nil) }} {
			if err := one(); err != nil {
				t.Fatal(err)
			}
		}
		for size := 1; size < 40; size++ {
			told, to := 0, &sink{}
			conn := &Conn{Conn: to, Broken: func() { told++ }}
			for left := said.Bytes(); len(left) > 0; left = left[min(size, len(left)):] {
				if _, err := conn.Write(left[:min(size, len(left))]); err != nil {
					t.Fatal(err)
				}
			}
			if told != c.told || !bytes.Equal(to.got.Bytes(), said.Bytes()) {
				t.Errorf("%s, in pieces of %d: told %d times, not %d", name, size, told, c.told)
			}
		}
	}
}

// answer writes the head of an answer and some of its body.
func answer(f *http2.Framer) error {
	var block bytes.Buffer
	if err := hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "200"}); err != nil {
		return err
	}
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		return err
	}
	return f.WriteData(1, false, bytes.Repeat([]byte{0, 3, 7}, 100))
}
