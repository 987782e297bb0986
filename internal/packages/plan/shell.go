package plan

import "strings"

// shellCommand is a simple command of a shell's text.
type shellCommand struct {
	words []string
	known bool // the shell makes nothing else of a word
	apart bool // it runs beside others, in a pipe or in the background, and changes nothing for them
}

// shellCommands splits a shell's text into simple commands, up to the first thing behind which it is not sure where one
// ends, such as a document in the text: no part of a comment, a document or a quotation is told as a command.
func shellCommands(text string) []shellCommand {
	s := splitting{known: true}
	for text != "" {
		took := s.takeWord(text)
		if took == 0 {
			return s.all
		}
		text = text[took:]
	}
	s.end(false)
	return s.all
}

// takeWord reads what a text begins with, and gives how many bytes that is; 0: it can't be read.
func (s *splitting) takeWord(text string) int {
	switch c := text[0]; c {
	case '\'', '"':
		return s.takeQuoted(text)
	case ' ', '\t':
		s.endWord()
	case '\n', ';', '&', '|':
		return s.takeSeparator(text)
	case '<', '>':
		if strings.HasPrefix(text, "<<") {
			return 0
		}
		s.redirect()
	case '#':
		if comment, _, _ := strings.Cut(text, "\n"); !s.inWord {
			return len(comment)
		}
		s.unknown(c)
	case '\\': // whatever stands behind it
		s.unknown(c)
		return min(2, len(text))
	case '`': // commands that another shell may run
		return 0
	case '[':
		s.known = s.known && s.inWord // extras: pip install uvicorn[standard]
		s.addByte(c)
	case '$':
		if strings.HasPrefix(text, "$'") || strings.HasPrefix(text, "$((") {
			return 0
		}
		s.unknown(c)
	case '*', '?', '~', '(', ')', '{', '}':
		s.unknown(c)
	default:
		s.addByte(c)
	}
	return 1
}

// takeQuoted reads a quotation; one that has other quotations in it, or their marks, can't be read.
func (s *splitting) takeQuoted(text string) int {
	within, _, closed := strings.Cut(text[1:], text[:1])
	if !closed || text[0] == '"' && (strings.ContainsAny(within, "\\`") || strings.Contains(within, "$(") || strings.Contains(within, "${")) {
		return 0
	}
	s.quoted(within, text[0])
	return len(within) + 2
}

// takeSeparator reads what stands between two commands.
func (s *splitting) takeSeparator(text string) int {
	if text[0] == '&' && s.redirects && !s.inWord { // 2>&1
		return 1
	}
	if strings.HasPrefix(text, "&&") || strings.HasPrefix(text, "||") {
		s.end(false)
		return 2
	}
	s.end(text[0] == '|' || text[0] == '&')
	s.piped = text[0] == '|'
	return 1
}

// splitting is a shell's text as far as it was read.
type splitting struct {
	all       []shellCommand
	words     []string
	word      strings.Builder
	inWord    bool
	known     bool // all words of this command are what they look like
	piped     bool // it reads what the one before it writes
	redirects bool // the next word is a file's name, or a number
}

func (s *splitting) addByte(c byte) {
	s.word.WriteByte(c)
	s.inWord = true
}

func (s *splitting) unknown(c byte) {
	s.known = false
	s.addByte(c)
}

func (s *splitting) quoted(text string, by byte) {
	s.known = s.known && (by == '\'' || !strings.Contains(text, "$"))
	s.word.WriteString(text)
	s.inWord = true
}

func (s *splitting) redirect() {
	if strings.Trim(s.word.String(), "0123456789") == "" { // the number of what is redirected
		s.word.Reset()
		s.inWord = false
	}
	s.endWord()
	s.redirects = true
}

func (s *splitting) endWord() {
	if s.inWord && !s.redirects {
		s.words = append(s.words, s.word.String())
	}
	s.redirects = s.redirects && !s.inWord
	s.word.Reset()
	s.inWord = false
}

func (s *splitting) end(apart bool) {
	s.endWord()
	if len(s.words) > 0 {
		s.all = append(s.all, shellCommand{s.words, s.known, apart || s.piped})
	}
	s.words, s.known, s.redirects, s.piped = nil, true, false, false
}
