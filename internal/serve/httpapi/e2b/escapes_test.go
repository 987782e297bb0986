package e2b

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// TestWhatATextBecomesInJSONIsCounted: a binary message goes through JSON, where a control character is six. The
// control is a text that is as long there.
func TestWhatATextBecomesInJSONIsCounted(t *testing.T) {
	k := newCodecs()[filesystemService+"Stat"]
	for _, c := range []struct {
		letter byte
		least  int // what each counts, beside itself
		most   int
	}{{'a', 2, 3}, {'"', 6, 7}, {1, 22, 23}} {
		const n = 1 << 20
		text := bytes.Repeat([]byte{c.letter}, n)
		message := append(protowire.AppendVarint([]byte{10}, uint64(n)), text...)
		if size := decodedSize(message, k.in, 0); size < c.least*n || size > c.most*n {
			t.Errorf("%q: %d bytes are counted for each", c.letter, size/n)
		}
	}
}
