package requestparts

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
)

// Stream reads a body in one of the ways in which a server may take it that no header names, while it
// passes. It gives nothing as long as the body does not look so.
type Stream interface {
	// Take takes more of the body in, and gives more of what it means. last tells that no more comes.
	Take(more []byte, last bool) (meant []byte)
}

// Streams are one for each way: pieces with their lengths, UTF-16 and UTF-32, and UTF-7.
func Streams() []Stream { return []Stream{&pieced{}, &zeroless{}, &shiftedLetters{}} }

// pieced reads pieces with their lengths before them.
type pieced struct{ chunks Chunks }

// Take implements Stream.
func (s *pieced) Take(more []byte, _ bool) []byte {
	if s.chunks.Broken() {
		return nil
	}
	return s.chunks.Take(more, nil)
}

// zeroless reads the ASCII of UTF-16 and UTF-32, from the first zero byte on.
type zeroless struct {
	begun bool
	kept  []byte // the letter that a zero byte may follow
}

// Take implements Stream.
func (s *zeroless) Take(more []byte, _ bool) []byte {
	if !s.begun {
		if bytes.IndexByte(more, 0) < 0 {
			if len(more) > 0 {
				s.kept = append(s.kept[:0], more[len(more)-1])
			}
			return nil
		}
		s.begun = true
		more = append(s.kept, more...)
	}
	meant, _ := withoutZeros(more)
	return meant
}

// maxShifted bounds what is read of UTF-7 at a time, in letters: whole groups of base64, and whole
// characters.
const maxShifted = 4 << 10

// shiftedLetters reads UTF-7, from the first run of base64 on that has a letter of ASCII in it.
type shiftedLetters struct {
	begun  bool
	inside bool   // of a run
	run    []byte // of base64, of the run that is read
	kept   []byte // what stands before the first run
}

// Take implements Stream.
func (s *shiftedLetters) Take(more []byte, last bool) (meant []byte) {
	for len(more) > 0 {
		if !s.inside {
			at := bytes.IndexByte(more, '+')
			if at < 0 {
				return s.addPlain(meant, more)
			}
			meant, more, s.inside = s.addPlain(meant, more[:at]), more[at+1:], true
			continue
		}
		n := 0
		for n < len(more) && inBase64(more[n]) && len(s.run)+n < maxShifted {
			n++
		}
		s.run, more = append(s.run, more[:n]...), more[n:]
		switch {
		case len(more) == 0:
		case len(s.run) == maxShifted: // the run goes on
			meant = s.decoded(meant)
		default:
			meant, s.inside = s.decoded(meant), false
			if more[0] == '-' {
				more = more[1:]
			}
		}
	}
	if last && s.inside {
		meant = s.decoded(meant)
	}
	return meant
}

// addPlain adds what stands for itself.
func (s *shiftedLetters) addPlain(meant, text []byte) []byte {
	if s.begun {
		return append(meant, text...)
	}
	if len(text) > 0 {
		s.kept = append(s.kept, text...)
		s.kept = append(s.kept[:0], s.kept[max(0, len(s.kept)-keptHead):]...)
	}
	return meant
}

// decoded adds the run that was read. One without a letter of ASCII stands for itself.
func (s *shiftedLetters) decoded(meant []byte) []byte {
	run := s.run
	s.run = s.run[:0]
	units, err := base64.RawStdEncoding.AppendDecode(nil, run[:len(run)-len(run)%4+trimLetters(len(run)%4)])
	ascii := false
	for i := 0; i+1 < len(units) && !ascii; i += 2 {
		ascii = units[i] == 0 && units[i+1] < 0x80
	}
	if err != nil || !ascii {
		return s.addPlain(s.addPlain(meant, []byte("+")), run)
	}
	if !s.begun {
		s.begun, meant, s.kept = true, append(meant, s.kept...), nil
	}
	text, _ := fromUTF16(binary.BigEndian)(units)
	return append(meant, text...)
}

// inBase64 tells whether a byte is a letter of base64.
func inBase64(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/'
}
