package outgoing

import "github.com/cofferdam-dev/cofferdam/internal/scan"

// stream is the scanner of one stream of bytes, which begins anew after a gap.
type stream struct {
	*scan.Scanner
	begins []place
	read   int64 // bytes of it so far
}

// place is where a piece of a stream lies in the whole output.
type place struct{ in, at int64 }

// maxPlaces bounds how many pieces of a stream are remembered: as many as the longest
// value can lie in, for what comes in ordinary pieces.
const maxPlaces = 64

// lies notes where in the whole output the next bytes of a stream are.
func (s *stream) lies(at int64) {
	if n := len(s.begins); n > 0 && s.begins[n-1].at-s.begins[n-1].in == at-s.read {
		return // right behind the last
	}
	if len(s.begins) == maxPlaces {
		s.begins = append(s.begins[:0], s.begins[1:]...)
	}
	s.begins = append(s.begins, place{in: s.read, at: at})
}

func (s *stream) length(n int) { s.read += int64(n) }

// place is where in the whole output a place of the stream is.
func (s *stream) place(in int64) int64 {
	for i := len(s.begins) - 1; i > 0; i-- {
		if s.begins[i].in <= in {
			return s.begins[i].at + in - s.begins[i].in
		}
	}
	return s.begins[0].at + in - s.begins[0].in
}
