package plan

import "strings"

// shellCommands splits a shell's text into simple commands. One with a word that the
// shell would make something else of is left out.
func shellCommands(text string) [][]string {
	s := splitting{known: true}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\'', '"':
			to := strings.IndexByte(text[i+1:], c)
			if to < 0 {
				return s.all
			}
			s.quoted(text[i+1:i+1+to], c)
			i += 1 + to
		case ' ', '\t':
			s.endWord()
		case '\n', ';', '&', '|':
			if c != '&' || !s.redirects { // 2>&1
				s.end()
			}
		case '<', '>':
			s.redirect()
		case '$', '`', '*', '?', '[', '~', '\\', '(', ')', '{', '}', '#':
			s.known = s.known && c == '[' && s.inWord // extras: pip install uvicorn[standard]
			s.add(c)
		default:
			s.add(c)
		}
	}
	s.end()
	return s.all
}

// splitting is a shell's text as far as it was read.
type splitting struct {
	all       [][]string
	words     []string
	word      strings.Builder
	inWord    bool
	known     bool // all words of this command are what they look like
	redirects bool // the next word is a file's name, or a number
}

func (s *splitting) add(c byte) {
	s.word.WriteByte(c)
	s.inWord = true
}

func (s *splitting) quoted(text string, by byte) {
	s.known = s.known && (by == '\'' || !strings.ContainsAny(text, "$`\\"))
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

func (s *splitting) end() {
	s.endWord()
	if s.known && len(s.words) > 0 {
		s.all = append(s.all, s.words)
	}
	s.words, s.known, s.redirects = nil, true, false
}
