package exchange

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// buildIndex has needles be found. It sorts them, and leaves out what is there twice.
func (n *needles) buildIndex() {
	if len(n.all) == 0 {
		return
	}
	slices.SortFunc(n.all, func(a, b needle) int {
		return cmp.Or(strings.Compare(a.text, b.text), strings.Compare(a.of, b.of))
	})
	n.all = slices.Compact(n.all)
	n.parent = make([]int, len(n.all))
	for i, one := range n.all {
		of := i - 1
		for of >= 0 && !strings.HasPrefix(one.text, n.all[of].text) {
			of = n.parent[of]
		}
		n.parent[i] = of
	}
	n.least = len(n.all[0].text)
	for i, one := range n.all {
		n.least, n.most = min(n.least, len(one.text)), max(n.most, len(one.text))
		n.first[one.text[0]] = append(n.first[one.text[0]], i)
		n.hasEnding = n.hasEnding || strings.ContainsFunc(one.text, func(c rune) bool { return c < utf8.RuneSelf && ending[c] })
		n.hasBreak = n.hasBreak || strings.ContainsAny(one.text, "\r\n")
		n.hasBlankLine = n.hasBlankLine || blankLine.MatchString(one.text)
		n.foreign = n.foreign || strings.ContainsFunc(one.text, func(c rune) bool { return c >= utf8.RuneSelf })
	}
	n.skip, n.ends = make([]uint8, hashed), map[uint32][]int{}
	farthest := min(n.least-block+1, 255)
	for h := range n.skip {
		n.skip[h] = uint8(farthest)
	}
	for i, one := range n.all {
		for end := block; end <= n.least; end++ {
			h := hashBytes([]byte(one.text[end-block : end]))
			n.skip[h] = uint8(min(int(n.skip[h]), n.least-end))
			if end == n.least {
				n.ends[h] = append(n.ends[h], i)
			}
		}
	}
}

// findNeedles visits each place of b that has a needle.
func (n *needles) findNeedles(b []byte, visit func(from, to int, of string)) {
	for end := n.least; end <= len(b); {
		h := hashBytes(b[end-block:])
		if by := n.skip[h]; by > 0 {
			end += int(by)
			continue
		}
		from := end - n.least
		rest, some := b[from:min(from+n.most, len(b))], n.ends[h]
		// All with which the rest begins are the last one that is not behind it in their order, or what that one begins with.
		if last := n.behind(some, rest) - 1; last >= 0 {
			for i := some[last]; i >= 0; i = n.parent[i] {
				if one := n.all[i]; len(rest) >= len(one.text) && string(rest[:len(one.text)]) == one.text {
					visit(from, from+len(one.text), one.of)
				}
			}
		}
		end++
	}
}

// behind is how many of some of all, in their order, are not behind a text. Thousands of one secret may begin alike,
// and whoever is inside may know how, so they are not tried one by one.
func (n *needles) behind(some []int, text []byte) int {
	begin, end := 0, len(some)
	for begin < end {
		if at := (begin + end) / 2; n.all[some[at]].text > string(text) {
			end = at
		} else {
			begin = at + 1
		}
	}
	return begin
}

// shortest implements finder.
func (n *needles) shortest() int { return n.least }

// lengthBegun is the length of the longest end of b with which a needle begins.
func (n *needles) lengthBegun(b []byte) int {
	for at := max(0, len(b)-n.most+1); at < len(b); at++ {
		rest, some := b[at:], n.first[b[at]]
		if next := n.behind(some, rest); next < len(some) && strings.HasPrefix(n.all[some[next]].text, string(rest)) {
			return len(rest)
		}
	}
	return 0
}
