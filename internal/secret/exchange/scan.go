package exchange

import (
	"bytes"
	"strings"
)

// hush is the least of a needle that is held back when a stream has no more for now. Less
// than that is found too often in what is something else, and a client that waits for it
// would wait for ever; if it was a needle's beginning after all, only the rest is masked.
const hush = 4

// scan looks for needles in a stream, across the borders of what is read at a time.
type scan struct {
	needles []string
	buf     []byte // passed on bytes that a needle may begin with, then held ones
	passed  int    // of buf: how many were passed on
	out     []byte // what the last take gave
}

// found is a place in what is taken in.
type found struct {
	from, to int
	needle   string
}

// take takes more of the stream in. It gives what can be passed on, in which each needle
// is masked by as many letters, and one that was found, "" if none. The result is the
// caller's until the next call. At the end (last) nothing is held.
func (s *scan) take(more []byte, last bool) (out []byte, hit string) {
	s.buf = append(s.buf, more...)
	places := s.find()
	behind := 0 // what begins before it is masked already
	for _, p := range places {
		behind, hit = max(behind, p.to), p.needle
	}
	begun := s.begun(behind)
	hold := begun
	if hold < hush || last {
		hold = 0
	}
	s.out = append(s.out[:0], s.buf...)
	for _, p := range places {
		for i := p.from; i < p.to; i++ {
			s.out[i] = 'x'
		}
	}
	end := max(len(s.buf)-hold, s.passed)
	out = s.out[s.passed:end]
	keep := len(s.buf) - begun
	s.passed = end - keep
	s.buf = append(s.buf[:0], s.buf[keep:]...)
	return out, hit
}

// find gives the needles' places, those of all needles.
func (s *scan) find() []found {
	var places []found
	for _, needle := range s.needles {
		for from := 0; ; {
			i := bytes.Index(s.buf[from:], []byte(needle))
			if i < 0 {
				break
			}
			places = append(places, found{from + i, from + i + len(needle), needle})
			from += i + 1
		}
	}
	return places
}

// begun is the length of the longest end of what is there, behind a place, that a needle
// begins with.
func (s *scan) begun(behind int) int {
	longest := 0
	for _, needle := range s.needles {
		start := max(behind, len(s.buf)-len(needle)+1)
		for start < len(s.buf)-longest {
			i := bytes.IndexByte(s.buf[start:], needle[0])
			if i < 0 {
				break
			}
			start += i
			if rest := s.buf[start:]; len(rest) > longest && strings.HasPrefix(needle, string(rest)) {
				longest = len(rest)
				break
			}
			start++
		}
	}
	return longest
}

// masked is a whole text without needles.
func masked(needles []string, text string) string {
	s := scan{needles: needles}
	out, hit := s.take([]byte(text), true)
	if hit == "" {
		return text
	}
	return string(out)
}

// containsAny tells which of the needles a text has.
func containsAny(needles []string, text string) bool {
	for _, n := range needles {
		if strings.Contains(text, n) {
			return true
		}
	}
	return false
}
