package dlp

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"time"
)

// Scanner scans one stream. Its memory is the longest value that a rule of its set knows,
// and what the last Write brought. Not safe for concurrent use.
type Scanner struct {
	rules []Rule
	table *table
	plan  Plan

	// buf is bytes of the stream from base on. Before done they are decided, and before
	// out they have gone: after each call out is not below done, and above it where
	// bytes were released undecided. The byte before done is kept.
	buf       []byte
	base      int64
	done, out int
	blocked   bool
	begun     bool // what is undecided has the beginning of a secret
	runs      []run
	known     []string // values that are no findings
}

// run is the piece of a rule's alphabet that was looked at last, in places of the stream.
// It is kept for the time that bytes take which are made to be slow.
type run struct {
	from, to int64
	closed   bool  // the byte at to is none of the alphabet
	tries    int   // that came to nothing
	last     int64 // the place of the last of them, and one more
}

// maxTries is how often a rule is tried in one run of its alphabet.
const maxTries = 16

// Scanner makes one for a stream. A value that is one of the known texts, has one in it, or
// is a part of one is passed over: it is no secret, and only looks like one.
func (s *Set) Scanner(p Plan, known ...string) *Scanner {
	return &Scanner{rules: s.rules, table: s.tableFor(p), plan: p, runs: make([]run, len(s.rules)), known: known}
}

// Write takes the next bytes, and returns what may go out, and what was found. out is good
// until the next call.
func (s *Scanner) Write(chunk []byte) (out []byte, found []Finding) {
	if s.blocked {
		return nil, nil
	}
	if s.plan.Off() {
		return chunk, nil
	}
	s.compact()
	s.buf = append(s.buf, chunk...)
	found = s.lookAhead(false)
	if !s.plan.Holds() {
		return s.Release(), found
	}
	return s.letOut(s.done), found
}

// Release gives out what waits, because it has waited for long enough. The value that it began is
// still found, and then masked as far as it has not gone.
func (s *Scanner) Release() []byte {
	if s.blocked {
		return nil
	}
	return s.letOut(len(s.buf))
}

// Close is the end of the stream.
func (s *Scanner) Close() (out []byte, found []Finding) {
	if s.blocked {
		return nil, nil
	}
	found = s.lookAhead(true)
	return s.letOut(s.done), found
}

// Blocked tells that nothing goes out any more.
func (s *Scanner) Blocked() bool { return s.blocked }

// Patience is how long what waits may wait from now on; 0: nothing waits.
func (s *Scanner) Patience() time.Duration {
	switch {
	case s.blocked || len(s.buf) <= s.out:
		return 0
	case s.begun:
		return LongPatience
	}
	return ShortPatience
}

// letOut gives out the bytes up to a place.
func (s *Scanner) letOut(upto int) []byte {
	from := s.out
	s.out = max(s.out, upto)
	return s.buf[from:s.out]
}

// compact drops what is decided, but for the last byte.
func (s *Scanner) compact() {
	drop := s.done - 1
	if drop <= 0 {
		return
	}
	s.buf = s.buf[:copy(s.buf, s.buf[drop:])]
	s.base += int64(drop)
	s.done -= drop
	s.out -= drop
}

// ruleVerdict is what a rule says at a place.
type ruleVerdict int

const (
	nothing   ruleVerdict = iota
	undecided             // more bytes are needed
	value
	passed // a value that is known
)

// lookAhead decides as many bytes as it can; all of them if no more come.
func (s *Scanner) lookAhead(final bool) (found []Finding) {
	b, t := s.buf, s.table
	i := s.done
	s.begun = false
	for ; i+1 < len(b); i++ {
		p := pairOf(b[i], b[i+1])
		if t.gate[p>>6]>>(p&63)&1 == 0 {
			continue
		}
		of := &t.starts[t.index[p]]
		if of.after != nil && i > 0 && of.after[b[i-1]] {
			continue
		}
		v, f := s.judgeAt(i, of.candidates, final)
		if v == undecided {
			break
		}
		if v == nothing {
			continue
		}
		end := int(f.At-s.base) + f.Length
		if v == passed {
			i = end - 1
			continue
		}
		found = append(found, f)
		if s.takeFinding(f, end) {
			s.done = int(f.At - s.base)
			return found
		}
		i = end - 1
	}
	if i+1 == len(b) && (final || !t.opens[b[i]]) {
		i++ // no value is one byte
	}
	s.done = i
	return found
}

// takeFinding does what becomes of a value; true: nothing goes out any more.
func (s *Scanner) takeFinding(f Finding, end int) (over bool) {
	switch f.Outcome {
	case Redact:
		for i := max(int(f.At-s.base), s.out); i < end; i++ {
			s.buf[i] = Mask
		}
	case Block:
		s.blocked = true
		return true
	case Off, Report:
	}
	return false
}

// judgeAt asks the rules that may apply at a place.
func (s *Scanner) judgeAt(i int, all []candidate, final bool) (ruleVerdict, Finding) {
	for _, c := range all {
		r, rest := &s.rules[c.rule], s.buf[i:]
		switch {
		case r.After != nil && i > 0 && r.After[s.buf[i-1]]:
			continue
		case c.begins != "" && len(rest) < len(c.begins):
			if !final && c.begins[:len(rest)] == string(rest) {
				return undecided, Finding{}
			}
			continue
		case string(rest[:len(c.begins)]) != c.begins:
			continue
		}
		v, from, to := s.tryRule(c.rule, i, final)
		switch v {
		case nothing, passed:
		case undecided:
			s.begun = s.begun || c.begins != ""
			return undecided, Finding{}
		case value:
			return s.sortFound(i+from, i+to), Finding{
				Rule: r.Name, Class: r.Class, Outcome: s.plan.Of(r.Class), At: s.base + int64(i+from), Length: to - from,
				Sum: sha256.Sum256(s.buf[i+from : i+to]), Late: s.out > i+from && s.plan.Of(r.Class) > Report,
			}
		}
	}
	return nothing, Finding{}
}

// sortFound tells values from known ones.
func (s *Scanner) sortFound(from, to int) ruleVerdict {
	text := s.buf[from:to]
	for _, k := range s.known {
		if bytes.Contains(text, []byte(k)) || len(text) <= len(k) && strings.Contains(k, string(text)) {
			return passed
		}
	}
	return value
}

// tryRule asks one rule about the run that begins at a place.
func (s *Scanner) tryRule(rule, i int, final bool) (v ruleVerdict, from, to int) {
	r, known := &s.rules[rule], &s.runs[rule]
	n, closed := s.extent(r, known, i)
	if n < r.Most && !closed && !final {
		if r.Early {
			if from, to = r.Match(s.buf[i:i+n], 0); to > from {
				return value, from, to
			}
		}
		return undecided, 0, 0
	}
	if known.tries >= maxTries || known.last == s.base+int64(i)+1 {
		return nothing, 0, 0
	}
	next := byte(0)
	if i+n < len(s.buf) {
		next = s.buf[i+n]
	}
	if from, to = r.Match(s.buf[i:i+n], next); to <= from {
		known.tries, known.last = known.tries+1, s.base+int64(i)+1
		return nothing, 0, 0
	}
	return value, from, to
}

// extent is how long the run at a place is, and whether it ends there. The known part of the run in
// which the place lies is not looked at again.
func (s *Scanner) extent(r *Rule, known *run, i int) (n int, closed bool) {
	place := s.base + int64(i)
	if place < known.from || place >= known.to {
		*known = run{from: place, to: place}
	}
	end := int(known.to - s.base)
	for !known.closed && end < len(s.buf) && end-i < r.Most {
		if !r.Alphabet[s.buf[end]] {
			known.closed = true
			break
		}
		end++
	}
	known.to = s.base + int64(end)
	if n = end - i; n > r.Most {
		return r.Most, false
	}
	return n, known.closed
}
