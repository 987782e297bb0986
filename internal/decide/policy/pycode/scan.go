package pycode

import "strings"

// scanText reads a text, of which the first line has a number; nested is how deep it lies in
// format strings.
func (s *scanner) scanText(code string, line, nested int) {
	all := tokens(code, line)
	for i := 0; i < len(all); i++ {
		t := all[i]
		switch t.kind {
		case '!':
			s.readShellLine(t, nested)
		case 'f':
			s.format(t, nested)
		case 's':
			s.literal(t)
		case 'n':
			i = s.readName(all, i)
		}
	}
}

// readShellLine reads a line of IPython's.
func (s *scanner) readShellLine(t token, nested int) {
	text := strings.TrimLeft(t.text, "!%")
	word, _, _ := strings.Cut(strings.TrimSpace(lineOf(text)), " ")
	mark := t.text[:len(t.text)-len(text)]
	if mark == "!" || mark == "!!" {
		s.addUse(Process, "!"+word, t.line)
		return
	}
	switch word {
	case "bash", "sh", "script", "sx", "system", "!", "ruby", "perl", "javascript", "pip", "conda", "mamba", "uv", "micromamba":
		s.addUse(Process, mark+word, t.line)
	case "run", "load", "loadpy", "load_ext", "macro", "rerun", "recall":
		s.addUse(DynamicCode, mark+word, t.line)
	case "time", "timeit", "capture", "prun", "debug": // what follows is Python
		if nested < maxNested {
			s.scanText(strings.TrimPrefix(strings.TrimSpace(text), word), t.line, nested+1)
		}
	}
}

// format looks into the expressions of a format string.
func (s *scanner) format(t token, nested int) {
	if nested >= maxNested {
		s.addUse(Obfuscation, "nested-format-strings", t.line)
		return
	}
	text := t.text
	for {
		_, rest, found := strings.Cut(text, "{")
		if !found {
			return
		}
		depth, end := 1, len(rest)
		for i := range len(rest) {
			switch rest[i] {
			case '{':
				depth++
			case '}':
				depth--
			}
			if depth == 0 {
				end = i
				break
			}
		}
		s.scanText(rest[:end], t.line, nested+1)
		text = rest[end:]
	}
}

const manyEscapes = 16

// literal is a string that looks as if it hid something.
func (s *scanner) literal(t token) {
	if strings.Count(t.text, `\x`) >= manyEscapes {
		s.addUse(Obfuscation, "escaped-text", t.line)
	}
}

// readName reads what begins with a name, and returns the last token that it took.
func (s *scanner) readName(all []token, i int) int {
	switch all[i].text {
	case "import":
		return s.imports(all, i)
	case "from":
		return s.imported(all, i)
	}
	if i > 0 && all[i-1].kind == '.' {
		return i // of something that is no name
	}
	path, last := dotted(all, i)
	if whole, known := s.names[headOfPath(path)]; known {
		path = replaceHead(path, whole)
	}
	called := kindAt(all, last+1) == '('
	if kindAt(all, last+1) == '=' && kindAt(all, last+2) == 'n' && last == i {
		s.noteAlias(all, i)
		return i
	}
	s.noteUse(path, all, last, called)
	return last
}

func headOfPath(path string) string {
	first, _, _ := strings.Cut(path, ".")
	return first
}

// replaceHead replaces the first name of a path, which stands for another path.
func replaceHead(path, whole string) string {
	return bounded(whole + strings.TrimPrefix(path, headOfPath(path)))
}

// bounded is a path as far as anything is known by one, so that names that stand for others do not grow.
func bounded(path string) string { return path[:min(len(path), maxPath)] }

// dotted is a.b.c from a token on, as far as anything is known by it, and its last token.
func dotted(all []token, i int) (path string, last int) {
	path, last = bounded(all[i].text), i
	for kindAt(all, last+1) == '.' && kindAt(all, last+2) == 'n' {
		if len(path) < maxPath {
			path = bounded(path + "." + bounded(all[last+2].text))
		}
		last += 2
	}
	return path, last
}

func kindAt(all []token, i int) rune {
	if i >= len(all) {
		return '\n'
	}
	return all[i].kind
}

// noteAlias notes `a = os` and `a = os.system`.
func (s *scanner) noteAlias(all []token, i int) {
	path, last := dotted(all, i+2)
	if kindAt(all, last+1) != '\n' && kindAt(all, last+1) != ';' {
		return
	}
	if whole, known := s.names[headOfPath(path)]; known {
		s.names[all[i].text] = replaceHead(path, whole)
	} else if kindOfBuiltin(path) != "" {
		s.names[all[i].text] = path
	}
}

// noteUse notes a dotted name where it is used.
func (s *scanner) noteUse(path string, all []token, last int, called bool) {
	line := all[last].line
	argument, constant := "", false
	if called && kindAt(all, last+2) == 's' && (kindAt(all, last+3) == ')' || kindAt(all, last+3) == ',') {
		argument, constant = all[last+2].text, true
	}
	switch {
	case path == "__import__" || path == "importlib.import_module" || path == "importlib.__import__" || path == "builtins.__import__":
		if !constant {
			s.addUse(Import, path, line)
			return
		}
		s.module(argument, line)
	case path == "getattr" && called:
		s.attribute(all, last)
	case kindOfBuiltin(path) == DynamicCode:
		s.addUse(DynamicCode, path, line)
	case strings.HasPrefix(path, "get_ipython") || strings.HasPrefix(path, "ip.system"):
		s.ipython(all, last)
	case decodes(path):
		if s.hides == 0 {
			s.hides = line
		}
		if s.runs {
			s.addUse(Obfuscation, "decoded-code", line)
		}
	case kindOfName(path) != "" && strings.Contains(path, "."):
		s.addUse(kindOfName(path), path, line)
	case path == "__builtins__" || path == "globals" && called && kindAt(all, last+2) == ')' && kindAt(all, last+3) == '[':
		s.addUse(Obfuscation, path, line)
	}
}

// ipython is `get_ipython().system(...)`.
func (s *scanner) ipython(all []token, last int) {
	for i := last + 1; i < min(len(all), last+6); i++ {
		switch all[i].text {
		case "system", "getoutput", "system_raw", "system_piped", "run_line_magic", "run_cell_magic", "magic":
			s.addUse(Process, "get_ipython."+all[i].text, all[i].line)
			return
		case "run_cell", "ex", "ev":
			s.addUse(DynamicCode, "get_ipython."+all[i].text, all[i].line)
			return
		}
	}
}

// attribute is `getattr(os, "system")`, or with a name that only the run knows.
func (s *scanner) attribute(all []token, last int) {
	if kindAt(all, last+2) != 'n' {
		return
	}
	path, end := dotted(all, last+2)
	whole, known := s.names[headOfPath(path)]
	if !known && path != "__builtins__" && path != "builtins" || kindAt(all, end+1) != ',' {
		return
	}
	if known {
		path = replaceHead(path, whole)
	}
	if kindAt(all, end+2) == 's' && kindAt(all, end+3) == ')' {
		if name := bounded(path + "." + bounded(all[end+2].text)); kindOfName(name) != "" {
			s.addUse(kindOfName(name), name, all[last].line)
		}
		return
	}
	if path == "os" || path == "builtins" || path == "__builtins__" || kindOfName(path) != "" {
		s.addUse(Obfuscation, "getattr-"+path, all[last].line)
	}
}

// module is one that is imported.
func (s *scanner) module(name string, line int) {
	if kind := kindOfName(name); kind != "" {
		s.addUse(kind, name, line)
	}
}

// imports reads `import a, b.c as d`.
func (s *scanner) imports(all []token, i int) int {
	for {
		if kindAt(all, i+1) != 'n' {
			return i
		}
		path, last := dotted(all, i+1)
		s.module(path, all[last].line)
		name, stands := headOfPath(path), headOfPath(path)
		if kindAt(all, last+1) == 'n' && all[last+1].text == "as" && kindAt(all, last+2) == 'n' {
			name, stands, last = all[last+2].text, path, last+2
		}
		s.names[name] = stands
		if kindAt(all, last+1) != ',' {
			return last
		}
		i = last + 1
	}
}

// imported reads `from a import b as c, d`.
func (s *scanner) imported(all []token, i int) int {
	if kindAt(all, i+1) != 'n' {
		return i
	}
	module, last := dotted(all, i+1)
	if kindAt(all, last+1) != 'n' || all[last+1].text != "import" {
		return i // yield from
	}
	last++
	for last+1 < len(all) {
		next := all[last+1]
		switch next.kind {
		case '(', ',', ')':
			last++
		case '*':
			s.noteStar(module, next.line)
			return last + 1
		case 'n':
			path := bounded(module + "." + bounded(next.text))
			if kindOfName(path) != "" {
				s.addUse(kindOfName(path), path, next.line)
			}
			last++
			name := next.text
			if kindAt(all, last+1) == 'n' && all[last+1].text == "as" && kindAt(all, last+2) == 'n' {
				name = all[last+2].text
				last += 2
			}
			s.names[name] = path
		default:
			return last
		}
	}
	return last
}

// noteStar notes `from a import *`.
func (s *scanner) noteStar(module string, line int) {
	if kindOfName(module) != "" || module == "os" || module == "posix" {
		s.addUse(Process, module+".*", line)
	}
	if module == "os" || module == "posix" {
		for _, name := range []string{"system", "popen", "execv", "execve", "execvp", "spawnv", "fork"} {
			s.names[name] = module + "." + name
		}
	}
}
