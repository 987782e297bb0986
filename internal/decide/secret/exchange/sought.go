package exchange

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// Sought are texts that an answer must not have in it: what its server was shown to let somebody in. They
// are found in all writings in which an Exchange finds a secret. A nil Sought looks for nothing. It is safe
// for concurrent use.
type Sought struct{ needles *needles }

// NewSought looks for texts, but for those of fewer than 8 bytes, which are found in what is something
// else. It is nil if no text is left.
func NewSought(texts ...string) *Sought {
	long := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return len(text) < shortest })
	if len(long) == 0 {
		return nil
	}
	return &Sought{newNeedles(map[string][]string{"a credential": long})}
}

// In tells whether a text has one of them in it.
func (s *Sought) In(text string) bool { return s != nil && s.needles.findInText(text) != "" }

// Mask masks them in a header's values, by as many letters. A field whose name has one is removed.
func (s *Sought) Mask(h http.Header) {
	if s != nil {
		maskHeader(s.needles, h)
	}
}

// Search begins to look through a text that comes in pieces.
func (s *Sought) Search() *Search {
	search := &Search{}
	if s != nil {
		search.scan.needles = s.needles
	} else {
		search.scan.needles, search.scan.tail.off = &needles{}, true
	}
	return search
}

// Search looks through one text. It is for one goroutine.
type Search struct {
	// Found tells that one was in what has come so far.
	Found bool
	scan  scan
}

// Take takes more of the text. It gives what can be passed on, with each letter of what is found masked;
// the result is the caller's until the next call. With last nothing comes behind it, and nothing is held
// back.
func (s *Search) Take(more []byte, last bool) []byte {
	out, of := s.scan.takeMore(more, last)
	s.Found = s.Found || of != ""
	return out
}

// BasicTexts are the texts of a pair of basic authentication that prove who somebody is: both as they are
// sent, and the password, or the user where clients have no password beside it or one that says nothing.
func BasicTexts(user, password string) []string {
	switch {
	case user+password == "":
		return nil
	case saysNothing(password):
		return []string{user + ":" + password, user}
	}
	return []string{user + ":" + password, password}
}

// saysNothing tells whether a password is what clients have beside a user that is the key.
func saysNothing(password string) bool {
	return slices.Contains([]string{"", "x-oauth-basic", "x", "X", "api_token", "_", "-", "unused"}, password)
}

// inBasicForm are the texts of a text that is a pair of basic authentication in base64: an operator may
// keep it like this, and whoever is shown it decodes it.
func inBasicForm(text string) []string {
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(text), "="))
	if err != nil || !utf8.Valid(decoded) || strings.ContainsFunc(string(decoded), func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return nil
	}
	user, password, pair := strings.Cut(string(decoded), ":")
	if !pair {
		return nil
	}
	return BasicTexts(user, password)
}
