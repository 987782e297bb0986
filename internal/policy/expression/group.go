package expression

import "strings"

// comment goes on after "(?#".
func (p *parser) comment() error {
	for p.more() {
		if p.skip(")") {
			return nil
		}
		p.next++
	}
	return p.fail("a comment without its )")
}

// globalFlags reads what may only stand at the beginning: "(?i)".
func (p *parser) globalFlags() (modes, error) {
	var all strings.Builder
	for {
		begin := p.next
		if p.skip("(?#") {
			if err := p.comment(); err != nil {
				return modes{}, err
			}
			continue
		}
		if !p.skip("(?") {
			break
		}
		if more := p.while(flagLetters, len(p.text)); more != "" && p.skip(")") {
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
		return m, p.fail("a flag that Python has not for text")
	case strings.Contains(both, "x"):
		return m, p.fail("the flag x, which is not read")
	case strings.Contains(on, "a") && strings.Contains(on, "u"):
		return m, p.fail("the flags a and u together")
	case strings.ContainsAny(off, "au"):
		return m, p.fail("the flags a and u can not be taken away")
	case strings.ContainsAny(on, off):
		return m, p.fail("a flag that is given and taken away")
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

// group goes on after "(".
func (p *parser) group(m modes) (*node, error) {
	if p.skip("?") {
		var err error
		if m, err = p.extension(m); err != nil {
			return nil, err
		}
	}
	n, err := p.choice(m)
	if err != nil {
		return nil, err
	}
	if !p.skip(")") {
		return nil, p.fail("a ( without its )")
	}
	return n, nil
}

// extension goes on after "(?", up to the group's parts.
func (p *parser) extension(m modes) (modes, error) {
	switch {
	case p.skip(":"):
		return m, nil
	case p.skip("P<"):
		return m, p.groupName()
	case p.skip("P="):
		return m, p.fail("a reference to a group, which is not read")
	case p.skip("=") || p.skip("!") || p.skip("<=") || p.skip("<!"):
		return m, p.fail("look-around, which is not read")
	case p.skip(">") || p.skip("("):
		return m, p.fail("an atomic or conditional group, which is not read")
	}
	on, off := p.while(flagLetters, len(p.text)), ""
	if p.skip("-") {
		if off = p.while(flagLetters, len(p.text)); off == "" {
			return m, p.fail("a flag is missing")
		}
	}
	switch {
	case strings.ContainsAny(on, "au") && p.skip(":"):
		return m, p.fail("the flag a or u for a part, which is not read: Python itself goes wrong with it")
	case on+off != "" && p.skip(":"):
		return p.switched(m, on, off)
	case on != "" && off == "" && p.peek() == ')':
		return m, p.fail("flags for the whole that do not stand at its beginning")
	}
	return m, p.fail("an extension that Python has not")
}

// groupName goes on after "(?P<".
func (p *parser) groupName() error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	name := p.while(letters, 1)
	if name != "" {
		name += p.while(letters+"0123456789", len(p.text))
	}
	if name == "" || !p.skip(">") {
		return p.fail("a group's name that is not of letters, digits and _")
	}
	if p.names[name] {
		return p.fail("a second group %s", name)
	}
	p.names[name] = true
	return nil
}
