package expression

import "strings"

// comment goes on after "(?#".
func (p *parser) comment() error {
	for p.hasMore() {
		if p.skipText(")") {
			return nil
		}
		p.next++
	}
	return p.errorHere("a comment without its )")
}

// globalFlags reads what may only stand at the beginning: "(?i)".
func (p *parser) globalFlags() (modes, error) {
	var all strings.Builder
	for {
		begin := p.next
		if p.skipText("(?#") {
			if err := p.comment(); err != nil {
				return modes{}, err
			}
			continue
		}
		if !p.skipText("(?") {
			break
		}
		if more := p.takeWhile(flagLetters, len(p.text)); more != "" && p.skipText(")") {
			all.WriteString(more)
			continue
		}
		p.next = begin
		break
	}
	return p.switched(modes{}, all.String(), "")
}

// flagLetters are the flags that Python has; switched says which are read.
const flagLetters = "aiLmstux"

func (p *parser) switched(m modes, on, off string) (modes, error) {
	switch both := on + off; {
	case strings.ContainsAny(both, "Lt"):
		return m, p.errorHere("a flag that Python has not for text")
	case strings.Contains(both, "x"):
		return m, p.errorHere("the flag x, which is not read")
	case strings.Contains(on, "a") && strings.Contains(on, "u"):
		return m, p.errorHere("the flags a and u together")
	case strings.ContainsAny(off, "au"):
		return m, p.errorHere("the flags a and u can not be taken away")
	case strings.ContainsAny(on, off):
		return m, p.errorHere("a flag that is given and taken away")
	}
	set := func(mode *bool, letter string) {
		*mode = (*mode || strings.Contains(on, letter)) && !strings.Contains(off, letter)
	}
	set(&m.fold, "i")
	set(&m.lines, "m")
	set(&m.dotAll, "s")
	set(&m.ascii, "a")
	if strings.Contains(on, "u") {
		m.ascii = false
	}
	return m, nil
}

// parseGroup goes on after "(".
func (p *parser) parseGroup(m modes) (*node, error) {
	if p.skipText("?") {
		var err error
		if m, err = p.extension(m); err != nil {
			return nil, err
		}
	}
	n, err := p.choice(m)
	if err != nil {
		return nil, err
	}
	if !p.skipText(")") {
		return nil, p.errorHere("a ( without its )")
	}
	return n, nil
}

// extension goes on after "(?", up to the group's parts.
func (p *parser) extension(m modes) (modes, error) {
	switch {
	case p.skipText(":"):
		return m, nil
	case p.skipText("P<"):
		return m, p.groupName()
	case p.skipText("P="):
		return m, p.errorHere("a reference to a group, which is not read")
	case p.skipText("=") || p.skipText("!") || p.skipText("<=") || p.skipText("<!"):
		return m, p.errorHere("look-around, which is not read")
	case p.skipText(">") || p.skipText("("):
		return m, p.errorHere("an atomic or conditional group, which is not read")
	}
	on, off := p.takeWhile(flagLetters, len(p.text)), ""
	if p.skipText("-") {
		if off = p.takeWhile(flagLetters, len(p.text)); off == "" {
			return m, p.errorHere("a flag is missing")
		}
	}
	switch {
	case strings.ContainsAny(on, "au") && p.skipText(":"):
		return m, p.errorHere("the flag a or u for a part, which is not read: Python itself goes wrong with it")
	case on+off != "" && p.skipText(":"):
		return p.switched(m, on, off)
	case on != "" && off == "" && p.peekRune() == ')':
		return m, p.errorHere("flags for the whole that do not stand at its beginning")
	}
	return m, p.errorHere("an extension that Python has not")
}

// groupName goes on after "(?P<".
func (p *parser) groupName() error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	name := p.takeWhile(letters, 1)
	if name != "" {
		name += p.takeWhile(letters+"0123456789", len(p.text))
	}
	if name == "" || !p.skipText(">") {
		return p.errorHere("a group's name that is not of letters, digits and _")
	}
	if p.names[name] {
		return p.errorHere("a second group %s", name)
	}
	p.names[name] = true
	return nil
}
