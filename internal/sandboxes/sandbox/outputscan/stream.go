package outputscan

import "github.com/cofferdam-dev/cofferdam/internal/decide/dlp"

// scannedStream is the scanner of one stream of bytes, which begins anew after a gap.
type scannedStream struct {
	*dlp.Scanner
	begins []outputPlace
	read   int64 // bytes of it so far
}

// outputPlace is where a piece of a stream lies in the whole output.
type outputPlace struct{ in, at int64 }

// maxPlaces bounds how many pieces of a stream are remembered: as many as the longest
// value can lie in, for what comes in ordinary pieces.
const maxPlaces = 64

// noteOffset notes where in the whole output the next bytes of a stream are.
func (s *scannedStream) noteOffset(at int64) {
	if n := len(s.begins); n > 0 && s.begins[n-1].at-s.begins[n-1].in == at-s.read {
		return // right behind the last
	}
	if len(s.begins) == maxPlaces {
		s.begins = append(s.begins[:0], s.begins[1:]...)
	}
	s.begins = append(s.begins, outputPlace{in: s.read, at: at})
}

func (s *scannedStream) length(n int) { s.read += int64(n) }

// placeInOutput is where in the whole output a place of the stream is.
func (s *scannedStream) placeInOutput(in int64) int64 {
	for i := len(s.begins) - 1; i > 0; i-- {
		if s.begins[i].in <= in {
			return s.begins[i].at + in - s.begins[i].in
		}
	}
	return s.begins[0].at + in - s.begins[0].in
}
