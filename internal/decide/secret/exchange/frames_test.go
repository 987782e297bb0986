package exchange

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

func frame(op byte, final bool, payload []byte) []byte {
	b := []byte{op, 0}
	if final {
		b[0] |= 0x80
	}
	switch n := len(payload); {
	case n < 126:
		b[1] = byte(n)
	case n < 1<<16:
		b[1] = 126
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	default:
		b[1] = 127
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return append(b, payload...)
}

// unframed gives the messages and control frames; ok: all of it is frames.
func unframed(b []byte) (messages []string, controls []string, ok bool) {
	var message []byte
	for len(b) > 0 {
		if len(b) < 2 {
			return messages, controls, false
		}
		n, head := int(b[1]&0x7f), 2
		switch n {
		case 126:
			if len(b) < 4 {
				return messages, controls, false
			}
			n, head = int(binary.BigEndian.Uint16(b[2:])), 4
		case 127:
			n, head = int(binary.BigEndian.Uint64(b[2:])), 10
		}
		if len(b) < head+n {
			return messages, controls, false
		}
		payload := b[head : head+n]
		if b[0]&8 != 0 {
			controls = append(controls, string(payload))
		} else if message = append(message, payload...); b[0]&0x80 != 0 {
			messages, message = append(messages, string(message)), nil
		}
		b = b[head+n:]
	}
	return messages, controls, true
}

// TestFramesOfAnySize: a message's secret is found however it lies in frames, and nothing else changes.
func TestFramesOfAnySize(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range frameRounds {
		secret := junk(r, alnum, 24)
		n := newNeedles(map[string][]string{"it": {secret}})
		f := frames{scan: scan{needles: n}}
		var wire []byte
		var want, wantControls []string
		for range 1 + r.IntN(4) {
			message := junk(r, alnum+" ", r.IntN(200)) + " "
			if r.IntN(2) == 0 {
				message += secret
			}
			message += " " + junk(r, alnum+" ", r.IntN(9000))
			want = append(want, strings.ReplaceAll(message, secret, strings.Repeat("x", len(secret))))
			rest := []byte(message)
			for first := true; first || len(rest) > 0; first = false {
				size := min(len(rest), []int{0, 1, 1 + r.IntN(30), 1 + r.IntN(300), len(rest)}[r.IntN(5)])
				op := byte(0)
				if first {
					op = 1
				}
				final := size == len(rest)
				wire = append(wire, frame(op, final, rest[:size])...)
				rest = rest[size:]
				for r.IntN(4) == 0 && !final {
					said := junk(r, alnum, r.IntN(60))
					wantControls = append(wantControls, said)
					wire = append(wire, frame(9, true, []byte(said))...)
				}
				if final {
					break
				}
			}
		}
		var out []byte
		for at := 0; at < len(wire); {
			end := min(len(wire), at+[]int{1, 1 + r.IntN(20), 1 + r.IntN(3000)}[r.IntN(3)])
			got, _, err := f.takeBytes(bytes.Clone(wire[at:end]), false)
			if err != nil {
				t.Fatal(round, err)
			}
			out = append(out, got...)
			at = end
		}
		got, _, _ := f.takeBytes(nil, true)
		out = append(out, got...)
		messages, controls, ok := unframed(out)
		if !ok || len(messages) != len(want) {
			t.Fatalf("round %d: %t, %d of %d messages", round, ok, len(messages), len(want))
		}
		for i := range want {
			if messages[i] != want[i] {
				t.Fatalf("round %d: message %d is another", round, i)
			}
		}
		if len(controls) != len(wantControls) {
			t.Fatalf("round %d: %d of %d controls", round, len(controls), len(wantControls))
		}
		if strings.Contains(strings.Join(messages, ""), secret) {
			t.Fatal("it came in")
		}
	}
}

// TestWhatIsReadyIsReadBeforeTheEnd by a reader that takes little at a time.
func TestWhatIsReadyIsReadBeforeTheEnd(t *testing.T) {
	w := &websocket{ready: []byte("the last frame"), err: io.EOF}
	if got, err := io.ReadAll(iotest.OneByteReader(w)); string(got) != "the last frame" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
