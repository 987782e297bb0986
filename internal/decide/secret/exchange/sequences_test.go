package exchange

import (
	"regexp"
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
					got, _ := s.takeMore(slices.Clone(part), false)
					out += string(got)
				}
				got, _ := s.takeMore(nil, true)
				if out += string(got); len(out) != len(text) || strings.Contains(out, write(secret)) {
					t.Errorf("%s behind %q, by %d: %q", name, begins, size, out)
				}
			}
		}
	}
}

// TestPiecesBehindASequencesBeginning: whole sequences between the letters of a secret that stands behind
// the beginning of one. A terminal takes the first letter for that one's end, and shows the rest.
func TestPiecesBehindASequencesBeginning(t *testing.T) {
	for _, secret := range []string{"sk-secret/value+1", "0123-secret-value", "correct horse battery"} {
		sought := seek(secret)
		for _, begins := range []string{"", "\x1b", "\x1b[", "\x1b[ ", "\x1b[1;31", "\x1b[1 ", "\x1b[?"} {
			for _, between := range []string{"\x1b[31m", "\x1b[m", "\x1b[0m\x1b[1m", "\x1b[2 q"} {
				for every := range 6 {
					pieces := ""
					for part := range slices.Chunk([]byte(secret), every+1) {
						pieces += string(part) + between
					}
					text := "a " + begins + pieces + " b"
					for _, size := range []int{1, 7, len(text)} {
						if out := scanned(sought, text, size); len(out) != len(text) || shown(out) > len("0123s") {
							t.Errorf("%q by %d: %q", text, size, out)
						}
					}
				}
			}
		}
		harmless := "a \x1b[" + strings.ReplaceAll(secret, "e", "\x1b[31mE") + " b"
		if out := scanned(sought, harmless, len(harmless)); out != harmless {
			t.Errorf("the control: %q came as %q", harmless, out)
		}
	}
}

// shown is how many letters a text has that are not masked, without sequences and what the tests set around.
func shown(text string) int {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "a "), " b")
	bare := regexp.MustCompile(`\x1b\[[ -?]*[@-w y-~]?|\x1b|x`).ReplaceAllString(text, "")
	return len(strings.ReplaceAll(bare, " ", ""))
}

// scanned is what comes of a text of which so many bytes come at a time.
func scanned(sought *needles, text string, size int) string {
	s, out := scan{needles: sought}, ""
	for part := range slices.Chunk([]byte(text), size) {
		got, _ := s.takeMore(slices.Clone(part), false)
		out += string(got)
	}
	got, _ := s.takeMore(nil, true)
	return out + string(got)
}

// TestAnEscapedLetterBehindASequencesBeginning: the first letter is escaped, and whole sequences stand between
// the others. The sequence that has no end takes nothing of the escape: all letters are found.
func TestAnEscapedLetterBehindASequencesBeginning(t *testing.T) {
	const secret = "sk-secret/value+1"
	sought := seek(secret)
	for name, write := range escapes() {
		if strings.HasPrefix(name, "base64") {
			continue // is none of one letter
		}
		for _, begins := range []string{"", "\x1b[", "\x1b[1;31", "\x1b[?"} {
			first := write(secret[:1])
			text := "a " + begins + first + "k-sec\x1b[31mret/val\x1b[0mue+1 b"
			if out := sought.masked(text); strings.Contains(out, "k-sec") || first != secret[:1] && strings.Contains(out, first) {
				t.Errorf("%s behind %q: %q", name, begins, out)
			}
			for _, size := range []int{1, 7} {
				if out := scanned(sought, text, size); len(out) != len(text) || strings.Contains(out, "k-") {
					t.Errorf("%s behind %q, by %d: %q", name, begins, size, out)
				}
			}
		}
	}
}

// TestWhatIsLeftBehindASequenceIsNoWord: a secret's end that is a word stands in what is something else. The controls:
// the secret, and what is left of one that is no word.
func TestWhatIsLeftBehindASequenceIsNoWord(t *testing.T) {
	for secret, texts := range map[string]map[string]bool{
		"2024-development":  {"in development": false, "2024-development": true, "\x1b[2024-development": true},
		"2024-development1": {"in development1": true},
	} {
		for text, hides := range texts {
			if out := seek(secret).masked(text); (out != text) != hides {
				t.Errorf("%s: %q came as %q", secret, text, out)
			}
		}
	}
}
