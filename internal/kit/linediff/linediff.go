// Package linediff compares two texts line by line, in a time that grows with the number of
// lines and not with its square: what is compared may be a guest's, or a client's.
//
// Lines that both sides have once are found first, and what is between them is compared on its own;
// only where little is left is every line held against every other. A line that can't be matched so
// is one that went and one that came, so that a difference may be longer than the shortest one
// (decision 68).
package linediff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

const (
	mostPairs = 1 << 18 // of lines that are held against each other at once
	mostLevel = 10      // how often what is between such lines is looked through again
	around    = 3       // lines that are shown around a change
)

// Unified is the difference of two texts in unified form, as patch takes it where the names are
// printable as they are; "": there is none. from and to name them in its first two lines, made printable: they may be an agent's. The
// texts' lines are as they are. A last line without an end says so.
func Unified(from, to string, before, after []byte) string {
	return unified(text.Name(from), text.Name(to), splitLines(before), splitLines(after))
}

// splitLines splits a text into its lines, each with its end.
func splitLines(text []byte) []string {
	all := slices.Collect(strings.Lines(string(text)))
	if n := len(all); n > 0 && !strings.HasSuffix(all[n-1], "\n") {
		all[n-1] += "\n\\ No newline at end of file\n"
	}
	return all
}

func unified(from, to string, before, after []string) string {
	m := &matching{before: numbered(before, nil), pairs: make([]int, len(before))}
	m.after = numbered(after, m.before.number)
	for i := range m.pairs {
		m.pairs[i] = -1
	}
	m.matchSpan(lineSpan{0, len(before), 0, len(after)}, 0)
	var b strings.Builder
	for _, h := range m.listHunks() {
		if b.Len() == 0 {
			fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, to)
		}
		m.writeHunk(&b, h, before, after)
	}
	return b.String()
}

// side is a text whose lines are numbers: equal ones are equal lines of either side.
type side struct {
	lines  []int
	number map[string]int
}

func numbered(lines []string, number map[string]int) side {
	if number == nil {
		number = map[string]int{}
	}
	s := side{lines: make([]int, len(lines)), number: number}
	for i, line := range lines {
		n, known := number[line]
		if !known {
			n = len(number)
			number[line] = n
		}
		s.lines[i] = n
	}
	return s
}

// matching finds which lines of two sides are the same.
type matching struct {
	before, after side
	pairs         []int // by lines before: the line after; -1: none
}

// lineSpan is a part of both sides, without its ends.
type lineSpan struct{ from, to, after, end int }

func (m *matching) matchSpan(s lineSpan, level int) {
	for s.from < s.to && s.after < s.end && m.before.lines[s.from] == m.after.lines[s.after] {
		m.pairs[s.from] = s.after
		s.from, s.after = s.from+1, s.after+1
	}
	for s.from < s.to && s.after < s.end && m.before.lines[s.to-1] == m.after.lines[s.end-1] {
		s.to, s.end = s.to-1, s.end-1
		m.pairs[s.to] = s.end
	}
	switch rows, columns := s.to-s.from, s.end-s.after; {
	case rows == 0 || columns == 0:
	case rows <= mostPairs/columns:
		m.matchEach(s)
	case level < mostLevel:
		at := s
		for _, anchor := range m.anchors(s) {
			m.matchSpan(lineSpan{at.from, anchor[0], at.after, anchor[1]}, level+1)
			m.pairs[anchor[0]] = anchor[1]
			at.from, at.after = anchor[0]+1, anchor[1]+1
		}
		if at != s { // else nothing was found, and would be found again
			m.matchSpan(at, level+1)
		}
	}
}

// matchEach holds every line against every other, and keeps the most that fit one behind the other.
func (m *matching) matchEach(s lineSpan) {
	rows, columns := s.to-s.from, s.end-s.after
	best := make([]int32, (rows+1)*(columns+1)) // of what is behind two lines
	at := func(i, j int) int { return i*(columns+1) + j }
	for i := rows - 1; i >= 0; i-- {
		for j := columns - 1; j >= 0; j-- {
			if m.before.lines[s.from+i] == m.after.lines[s.after+j] {
				best[at(i, j)] = best[at(i+1, j+1)] + 1
			} else {
				best[at(i, j)] = max(best[at(i+1, j)], best[at(i, j+1)])
			}
		}
	}
	for i, j := 0, 0; i < rows && j < columns; {
		switch {
		case m.before.lines[s.from+i] == m.after.lines[s.after+j]:
			m.pairs[s.from+i] = s.after + j
			i, j = i+1, j+1
		case best[at(i+1, j)] >= best[at(i, j+1)]:
			i++
		default:
			j++
		}
	}
}

// anchors are lines that both parts have once, as many as are in the same order in both.
func (m *matching) anchors(s lineSpan) [][2]int {
	const twice = -1
	once := func(lines []int, from int) map[int]int {
		at := make(map[int]int, len(lines))
		for i, line := range lines {
			if _, known := at[line]; known {
				at[line] = twice
			} else {
				at[line] = from + i
			}
		}
		return at
	}
	before, after := once(m.before.lines[s.from:s.to], s.from), once(m.after.lines[s.after:s.end], s.after)
	var both [][2]int
	for i := s.from; i < s.to; i++ {
		line := m.before.lines[i]
		if j, there := after[line]; there && j != twice && before[line] != twice {
			both = append(both, [2]int{i, j})
		}
	}
	return longestRising(both)
}

// longestRising are the most pairs whose second numbers rise as the first ones do.
func longestRising(pairs [][2]int) [][2]int {
	var ends []int // the pair with the smallest end of those that so many lead to
	before := make([]int, len(pairs))
	for i, pair := range pairs {
		n, _ := slices.BinarySearchFunc(ends, pair[1], func(end, j int) int { return pairs[end][1] - j })
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	if len(ends) == 0 {
		return nil
	}
	rising := make([][2]int, 0, len(ends))
	for i := ends[len(ends)-1]; i >= 0; i = before[i] {
		rising = append(rising, pairs[i])
	}
	slices.Reverse(rising)
	return rising
}

// listHunks lists the changed parts with what is shown around them, those that touch as one.
func (m *matching) listHunks() []lineSpan {
	var all []lineSpan
	i, j, rows, columns := 0, 0, len(m.before.lines), len(m.after.lines)
	for i < rows || j < columns {
		if i < rows && m.pairs[i] == j {
			i, j = i+1, j+1
			continue
		}
		h := lineSpan{max(0, i-around), i, max(0, j-around), j}
		for h.to < rows && m.pairs[h.to] < 0 {
			h.to++
		}
		h.end = columns
		if h.to < rows {
			h.end = m.pairs[h.to]
		}
		i, j = h.to, h.end
		h.to, h.end = min(rows, h.to+around), min(columns, h.end+around)
		if last := len(all) - 1; last >= 0 && all[last].to >= h.from {
			all[last].to, all[last].end = h.to, h.end
			continue
		}
		all = append(all, h)
	}
	return all
}

// writeHunk writes a hunk.
func (m *matching) writeHunk(b *strings.Builder, h lineSpan, before, after []string) {
	fmt.Fprintf(b, "@@ -%s +%s @@\n", ranged(h.from, h.to), ranged(h.after, h.end))
	j := h.after
	for i := h.from; i < h.to; i++ {
		if m.pairs[i] < 0 {
			b.WriteString("-" + before[i])
			continue
		}
		for ; j < m.pairs[i]; j++ {
			b.WriteString("+" + after[j])
		}
		b.WriteString(" " + before[i])
		j++
	}
	for ; j < h.end; j++ {
		b.WriteString("+" + after[j])
	}
}

// ranged is a part of a side, as unified form has it.
func ranged(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}
