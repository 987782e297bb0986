package expression

import (
	"fmt"
	"strconv"
	"strings"
)

// maxRepeat is the highest number that a repeat may have.
const maxRepeat = 1000

// modes are what flags switch on.
type modes struct{ fold, lines, dotAll, ascii bool }

// parser reads an expression, character by character, as Python's own does.
type parser struct {
	text  []rune
	next  int
	names map[string]bool // of groups
}

func parseExpression(text string) (*node, error) {
	p := &parser{text: []rune(text), names: map[string]bool{}}
	m, err := p.globalFlags()
	if err != nil {
		return nil, err
	}
	n, err := p.choice(m)
	if err != nil {
		return nil, err
	}
	if p.hasMore() {
		return nil, p.errorHere("an unbalanced )")
	}
	return n, nil
}

// errorHere returns an error that names where the parser is.
func (p *parser) errorHere(format string, args ...any) error {
	return fmt.Errorf("at character %d: %s", max(p.next, 1), fmt.Sprintf(format, args...))
}

func (p *parser) hasMore() bool { return p.next < len(p.text) }

// peekRune is the next character; none at the end.
func (p *parser) peekRune() rune {
	if !p.hasMore() {
		return none
	}
	return p.text[p.next]
}

// skipText goes over a text if it is next.
func (p *parser) skipText(s string) bool {
	n := p.next
	for _, r := range s {
		if n == len(p.text) || p.text[n] != r {
			return false
		}
		n++
	}
	p.next = n
	return true
}

func (p *parser) choice(m modes) (*node, error) {
	n := &node{kind: choice}
	for {
		part, err := p.sequence(m)
		if err != nil {
			return nil, err
		}
		if n.parts = append(n.parts, part); !p.skipText("|") {
			return n, nil
		}
	}
}

func (p *parser) sequence(m modes) (*node, error) {
	n := &node{kind: sequence}
	for p.hasMore() && p.peekRune() != '|' && p.peekRune() != ')' {
		if p.skipText("(?#") {
			if err := p.comment(); err != nil {
				return nil, err
			}
			continue
		}
		least, most, is, err := p.repeat()
		if err != nil {
			return nil, err
		}
		if is {
			if err := p.repeated(n, least, most); err != nil {
				return nil, err
			}
			continue
		}
		item, err := p.parseItem(m)
		if err != nil {
			return nil, err
		}
		n.parts = append(n.parts, item)
	}
	return n, nil
}

// repeat reads "*", "+", "?" and "{2,3}". Other braces are characters.
func (p *parser) repeat() (least, most int, is bool, err error) {
	switch {
	case p.skipText("*"):
		return 0, unlimited, true, nil
	case p.skipText("+"):
		return 1, unlimited, true, nil
	case p.skipText("?"):
		return 0, 1, true, nil
	case p.peekRune() != '{':
		return 0, 0, false, nil
	}
	begin := p.next
	p.next++
	low := p.takeWhile("0123456789", len(p.text))
	high := low
	comma := p.skipText(",")
	if comma {
		high = p.takeWhile("0123456789", len(p.text))
	}
	if low+high == "" && !comma || !p.skipText("}") {
		p.next = begin
		return 0, 0, false, nil
	}
	most = unlimited
	for _, bound := range []struct {
		text string
		to   *int
	}{{low, &least}, {high, &most}} {
		if bound.text == "" {
			continue
		}
		if *bound.to, err = strconv.Atoi(bound.text); err != nil || *bound.to > maxRepeat {
			return 0, 0, false, p.errorHere("a repeat of more than %d", maxRepeat)
		}
	}
	if most != unlimited && most < least {
		return 0, 0, false, p.errorHere("a repeat whose end is before its beginning")
	}
	return least, most, true, nil
}

// takeWhile reads up to most of some characters.
func (p *parser) takeWhile(some string, most int) string {
	begin := p.next
	for p.hasMore() && p.next-begin < most && strings.ContainsRune(some, p.peekRune()) {
		p.next++
	}
	return string(p.text[begin:p.next])
}

// repeated puts the last part of n into a loop.
func (p *parser) repeated(n *node, least, most int) error {
	if len(n.parts) == 0 || n.parts[len(n.parts)-1].kind == at {
		return p.errorHere("nothing to repeat")
	}
	last := &n.parts[len(n.parts)-1]
	if (*last).kind == loop {
		return p.errorHere("a repeat of a repeat")
	}
	if p.skipText("+") {
		return p.errorHere("a possessive repeat, which is not read")
	}
	p.skipText("?") // what is taken first makes no difference to what is found
	*last = &node{kind: loop, parts: []*node{*last}, least: least, most: most}
	return nil
}

// parseItem reads what is no repeat.
func (p *parser) parseItem(m modes) (*node, error) {
	r := p.peekRune()
	p.next++
	switch r {
	case '(':
		return p.parseGroup(m)
	case '[':
		return p.bracket(m)
	case '\\':
		return p.escape(m)
	case '.':
		s := &set{negated: true}
		if !m.dotAll {
			s.spans = []runeRange{{'\n', '\n'}}
		}
		return &node{kind: one, set: s.sealSet()}, nil
	case '^':
		if m.lines {
			return &node{kind: at, place: lineBegin}, nil
		}
		return &node{kind: at, place: textBegin}, nil
	case '$':
		if m.lines {
			return &node{kind: at, place: lineEnd}, nil
		}
		return &node{kind: at, place: lastLineEnd}, nil
	}
	return p.character(r, m)
}

// character is a set of one.
func (p *parser) character(r rune, m modes) (*node, error) {
	s := &set{spans: []runeRange{{r, r}}, fold: m.fold, ascii: m.ascii}
	return &node{kind: one, set: s.sealSet()}, p.checkCase(s, r)
}

// checkCase refuses a character on which Python itself goes wrong: next to
// others it does not find an upper case that is beyond the basic plane.
func (p *parser) checkCase(s *set, r rune) error {
	if s.fold && !s.ascii && r > 0xffff && nextCase(r, false) != r {
		return p.errorHere("the flag i with a letter beyond U+FFFF, which is not read")
	}
	return nil
}
