package exchange

import (
	"slices"
	"strings"
	"testing"
)

// TestAnEscapeBehindASequencesBeginning: what begins as a sequence for terminals takes nothing of the
// escape behind it along, however the stream is cut.
func TestAnEscapeBehindASequencesBeginning(t *testing.T) {
	const secret = "sk-secret/value+1"
	sought := seek(secret)
	if control := "sk-s\x1b[1;31mecret\x1b[2 q/value+1"; strings.Contains(sought.masked(control), "ecret") {
		t.Errorf("the control: whole sequences between the letters: %q", sought.masked(control))
	}
	for name, write := range escapes() {
		for _, begins := range []string{"", "\x1b", "\x1b[", "\x1b[ ", "\x1b[1;31", "\x1b[1 ", "\x1b[?"} {
			text := "a " + begins + write(secret) + " b"
			for _, size := range []int{1, 7, len(text)} {
				s, out := scan{needles: sought}, ""
				for part := range slices.Chunk([]byte(text), size) {
					got, _ := s.take(slices.Clone(part), false)
					out += string(got)
				}
				got, _ := s.take(nil, true)
				if out += string(got); len(out) != len(text) || strings.Contains(out, write(secret)) {
					t.Errorf("%s behind %q, by %d: %q", name, begins, size, out)
				}
			}
		}
	}
}
