// Package personal has the rules for personal data: numbers whose form or checksum tells
// what they are, and addresses of mail.
package personal

import (
	"bytes"
	"regexp"

	"github.com/google/osv-scalibr/veles/sensitiveinformation/common/simpleregex"
	"github.com/google/osv-scalibr/veles/sensitiveinformation/iban"
	"github.com/google/osv-scalibr/veles/sensitiveinformation/ssn"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
)

// Rules are all rules for personal data. They are made anew at each call.
func Rules() []dlp.Rule {
	words := dlp.AlphabetOf(dlp.Letters, dlp.Digits, "._%+-@/:=~")
	digits := dlp.AlphabetOf(dlp.Digits)
	return []dlp.Rule{
		{
			Name: "email", Class: dlp.Personal, Opens: dlp.AlphabetOf(dlp.Letters, dlp.Digits), After: words,
			Alphabet: dlp.AlphabetOf(dlp.Letters, dlp.Digits, "._%+-@"), Most: 128, Match: findEmail(),
		},
		{
			Name: "payment-card", Class: dlp.Personal, Opens: digits, After: words,
			Alphabet: dlp.AlphabetOf(dlp.Digits, " -"), Most: 32, Match: findCard,
		},
		{
			Name: "iban", Class: dlp.Personal, Opens: dlp.AlphabetOf(dlp.Upper), After: words,
			Alphabet: dlp.AlphabetOf(dlp.Upper, dlp.Digits, " "), Most: 42, Match: account(),
		},
		{
			Name: "phone", Class: dlp.Personal, Opens: dlp.AlphabetOf("+"), After: words,
			Alphabet: dlp.AlphabetOf(dlp.Digits, "+ -.()"), Most: 28, Match: findPhone(),
		},
		{
			Name: "us-social-security-number", Class: dlp.Personal, Opens: digits, After: words,
			Alphabet: dlp.AlphabetOf(dlp.Digits, "-"), Most: 12, Match: socialSecurity(),
		},
	}
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
}

// findEmail finds an address; not one of a machine or of an example.
func findEmail() func([]byte, byte) (from, to int) {
	re := regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@([A-Za-z][A-Za-z0-9-]{0,62}\.(?:[A-Za-z0-9-]{1,62}\.){0,3}[A-Za-z]{2,24})`)
	nobody := regexp.MustCompile(`(?i)\A(?:git|hg|svn|noreply|no-reply)@|[@.](?:example|test|invalid|localhost)\z|[@.]example\.[a-z]+\z`)
	return func(run []byte, _ byte) (from, to int) {
		if bytes.IndexByte(run, '@') < 1 { // most words
			return 0, 0
		}
		at := re.FindIndex(run)
		if at == nil || at[1] < len(run) && isWord(run[at[1]]) || nobody.Match(run[:at[1]]) {
			return 0, 0
		}
		return 0, at[1]
	}
}

// findCard finds the number of a payment card: of a known issuer, of its length, with the
// checksum, in one piece or in groups with one and the same thing between them.
func findCard(run []byte, next byte) (from, to int) {
	var number [19]byte
	n, separator := 0, byte(0)
	end := 0
	for i, c := range run {
		if c >= '0' && c <= '9' {
			if n == len(number) {
				return 0, 0
			}
			number[n] = c - '0'
			n++
			end = i + 1
			continue
		}
		if separator == 0 {
			separator = c
		}
		if c != separator || i != end || n < 4 { // the number is over
			break
		}
	}
	if end == len(run) && isWord(next) || !issued(number[:n]) || !luhnHolds(number[:n]) {
		return 0, 0
	}
	return 0, end
}

// issued tells whether a number has the beginning and the length of a card's.
func issued(number []byte) bool {
	if len(number) < 14 {
		return false
	}
	first := func(n int) int {
		v := 0
		for _, d := range number[:n] {
			v = v*10 + int(d)
		}
		return v
	}
	two, four := first(2), first(4)
	switch {
	case number[0] == 4, two >= 51 && two <= 55, four >= 2221 && four <= 2720, four == 6011, two == 65, two == 35, two == 62:
		return len(number) == 16 // the few that are longer can't be told from other numbers
	case two == 34, two == 37:
		return len(number) == 15
	case two == 36, two == 38, first(3) >= 300 && first(3) <= 305:
		return len(number) == 14
	}
	return false
}

func luhnHolds(number []byte) bool {
	sum, same := 0, true
	for i, d := range number {
		v := int(d)
		if (len(number)-i)%2 == 0 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
		same = same && d == number[0]
	}
	return sum%10 == 0 && !same
}

// account finds an international bank account number. Examples that everybody uses are
// none to the library.
func account() func([]byte, byte) (from, to int) {
	d, ok := iban.NewDetector().(simpleregex.Detector)
	match := ofLibrary(d, ok)
	return func(run []byte, next byte) (from, to int) {
		const least = 15
		if len(run) < least || run[2] > '9' || run[3] > '9' { // most words
			return 0, 0
		}
		return match(run, next)
	}
}

func socialSecurity() func([]byte, byte) (from, to int) {
	d, ok := ssn.NewDetector().(simpleregex.Detector)
	match := ofLibrary(d, ok)
	return func(run []byte, next byte) (from, to int) {
		const length = 11 // with its hyphens: nine digits alone can be anything
		if len(run) != length || isWord(next) {
			return 0, 0
		}
		return match(run, next)
	}
}

// ofLibrary matches as a detector of the library does, if it is still made as it was.
func ofLibrary(d simpleregex.Detector, ok bool) func([]byte, byte) (from, to int) {
	if !ok {
		return func([]byte, byte) (from, to int) { return 0, 0 } // TestEveryRule sees it
	}
	re := regexp.MustCompile(`\A(?:` + d.Re.String() + `)`)
	return func(run []byte, next byte) (from, to int) {
		at := re.FindIndex(run)
		if at == nil || at[1] == len(run) && isWord(next) {
			return 0, 0
		}
		if _, good := d.FromMatch(run[:at[1]], false); !good {
			return 0, 0
		}
		return 0, at[1]
	}
}

// findPhone finds a number in the international form with something between its groups:
// digits alone behind a plus can be anything.
func findPhone() func([]byte, byte) (from, to int) {
	re := regexp.MustCompile(`\A\+[1-9][0-9]{0,2}(?:[ .-]?\([0-9]{1,4}\)[ .-]?|[ .-])[0-9]{2,6}(?:[ .-]?[0-9]{2,6}){1,4}`)
	return func(run []byte, next byte) (from, to int) {
		at := re.FindIndex(run)
		if at == nil || at[1] == len(run) && isWord(next) || at[1] < len(run) && isWord(run[at[1]]) {
			return 0, 0
		}
		digits := 0
		for _, c := range run[:at[1]] {
			if c >= '0' && c <= '9' {
				digits++
			}
		}
		if digits < 9 || digits > 15 {
			return 0, 0
		}
		return 0, at[1]
	}
}
