package expression

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	octal       = "01234567"
	hexadecimal = "0123456789abcdefABCDEF"
)

// escape goes on after a "\" that is not in brackets.
func (p *parser) escape(m modes) (*node, error) {
	c := p.peekRune()
	if where, is := m.placeOfLetter(c); is {
		p.next++
		return &node{kind: at, place: where}, nil
	}
	if isClass(c) {
		p.next++
		s := &set{classes: []class{class(c)}, ascii: m.ascii}
		return &node{kind: one, set: s.sealSet()}, nil
	}
	if '1' <= c && c <= '9' && !p.threeOctal() {
		return nil, p.errorHere("a reference to a group, which is not read")
	}
	r, err := p.escaped()
	if err != nil {
		return nil, err
	}
	return p.character(r, m)
}

// placeOfLetter is what an escaped letter says of where one is.
func (m modes) placeOfLetter(c rune) (positionKind, bool) {
	switch c {
	case 'A':
		return textBegin, true
	case 'Z':
		return textEnd, true
	case 'b':
		if m.ascii {
			return asciiWordEdge, true
		}
		return wordEdge, true
	case 'B':
		if m.ascii {
			return noASCIIWordEdge, true
		}
		return noWordEdge, true
	}
	return 0, false
}

func isClass(c rune) bool { return c > 0 && strings.ContainsRune("dDsSwW", c) }

func (p *parser) threeOctal() bool {
	for i := range 3 {
		if p.next+i >= len(p.text) || !strings.ContainsRune(octal, p.text[p.next+i]) {
			return false
		}
	}
	return true
}

// escaped reads the character that is written after a "\".
func (p *parser) escaped() (rune, error) {
	if !p.hasMore() {
		return 0, p.errorHere("a \\ at the end")
	}
	c := p.peekRune()
	if strings.ContainsRune(octal, c) {
		return p.parseNumber(octal, 8, 1, 3)
	}
	p.next++
	switch c {
	case 'x':
		return p.parseNumber(hexadecimal, 16, 2, 2)
	case 'u':
		return p.parseNumber(hexadecimal, 16, 4, 4)
	case 'U':
		return p.parseNumber(hexadecimal, 16, 8, 8)
	case 'N':
		return 0, p.errorHere("a character by its name, which is not read; write its number, as in \\u20ac")
	}
	if i := strings.IndexRune("abfnrtv", c); i >= 0 {
		return rune("\a\b\f\n\r\t\v"[i]), nil
	}
	if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '8' || c == '9' {
		return 0, p.errorHere("\\%c, which Python has not", c)
	}
	return c, nil
}

// parseNumber reads a character's number.
func (p *parser) parseNumber(digits string, base, least, most int) (rune, error) {
	text := p.takeWhile(digits, most)
	n, err := strconv.ParseUint(text, base, 32)
	switch {
	case len(text) < least || err != nil:
		return 0, p.errorHere("an escape that is not whole")
	case base == 8 && n > 0o377:
		return 0, p.errorHere("an octal escape above 377")
	case n > utf8.MaxRune || !utf8.ValidRune(rune(n)):
		return 0, p.errorHere("an escape that is no character")
	}
	return rune(n), nil
}

// bracket goes on after "[".
func (p *parser) bracket(m modes) (*node, error) {
	s := &set{fold: m.fold, ascii: m.ascii, negated: p.skipText("^")}
	for empty := true; ; empty = false {
		if !p.hasMore() {
			return nil, p.errorHere("a [ without its ]")
		}
		if !empty && p.skipText("]") {
			return &node{kind: one, set: s.sealSet()}, nil
		}
		if err := p.element(s); err != nil {
			return nil, err
		}
	}
}

// element reads a character, a class or a range of a set.
func (p *parser) element(s *set) error {
	if p.skipText("[:") {
		return p.errorHere("a class like [:alpha:], which Python reads as something else")
	}
	low, isSet, err := p.parseBound(s)
	if err != nil {
		return err
	}
	if p.peekRune() != '-' || p.next+1 < len(p.text) && p.text[p.next+1] == ']' {
		if !isSet {
			s.spans = append(s.spans, runeRange{low, low})
			return p.checkCase(s, low)
		}
		return nil
	}
	p.next++
	if !p.hasMore() {
		return p.errorHere("a [ without its ]")
	}
	high, alsoSet, err := p.parseBound(s)
	if err != nil {
		return err
	}
	if isSet || alsoSet || high < low {
		return p.errorHere("an invalid range")
	}
	s.spans = append(s.spans, runeRange{low, high})
	return nil
}

// parseBound reads a character of a set, or adds a class to it.
func (p *parser) parseBound(s *set) (r rune, isClassOf bool, err error) {
	if !p.skipText("\\") {
		r = p.peekRune()
		p.next++
		return r, false, nil
	}
	if c := p.peekRune(); isClass(c) {
		p.next++
		s.classes = append(s.classes, class(c))
		return 0, true, nil
	}
	r, err = p.escaped()
	return r, false, err
}
