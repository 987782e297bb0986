package expression

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// question is an expression and texts to find it in.
type question struct {
	expression string
	texts      []string
}

// askPython returns a line of answers for each question: a character per
// text, and "."; or "refused".
func askPython(t *testing.T, questions []question) []string {
	t.Helper()
	var in bytes.Buffer
	encoder := json.NewEncoder(&in)
	encoder.SetEscapeHTML(false)
	for _, q := range questions {
		if err := encoder.Encode([]any{q.expression, q.texts}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "python3", "testdata/judge.py")
	cmd.Stdin = &in
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	var answers []string
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		answers = append(answers, lines.Text())
	}
	if len(answers) != len(questions) {
		t.Fatalf("%d answers to %d questions", len(answers), len(questions))
	}
	return answers
}

// notRead tells our refusals of what Python reads; its releases before 3.11
// still read flags in the middle.
func notRead(err error) bool {
	for _, reason := range []string{"which is not read", "a repeat of more than", "it is too large", "reads as something else", "that is no character", "stand at its beginning"} {
		if strings.Contains(err.Error(), reason) {
			return true
		}
	}
	return false
}

// compare asks Python and us, and reports each difference; control counts the
// answers that Go's own expressions give otherwise, refusals left out.
func compare(t *testing.T, questions []question) (read, found, control int) {
	t.Helper()
	for i, answer := range askPython(t, questions) {
		q := questions[i]
		e, err := Parse(q.expression)
		switch refused := answer == "refused"; {
		case refused && err == nil:
			t.Errorf("%q: Python refuses it, and here it is read", q.expression)
		case !refused && err != nil && !notRead(err):
			t.Errorf("%q: Python reads it, and here: %v", q.expression, err)
		case refused || err != nil:
			continue
		}
		read++
		plain, plainErr := regexp.Compile(q.expression)
		for k, text := range q.texts {
			if e == nil || k >= len(answer) {
				break
			}
			want := answer[k] == '1'
			if want {
				found++
			}
			if got, ok := e.Find(text); ok && got != want || !ok && (text != "" || !e.inner) {
				t.Errorf("%q in %q: %v (%v), and Python %v", q.expression, text, got, ok, want)
			}
			if plainErr == nil && plain.MatchString(text) != want {
				control++
			}
		}
	}
	return read, found, control
}

// drawn makes expressions and texts of the same few characters, so that they
// meet often.
type drawn struct{ *rand.Rand }

func (d drawn) one(of []string) string { return of[d.IntN(len(of))] }

// someCharacters are what classes, case and edges of words disagree about.
func someCharacters() []string {
	return strings.Split("a|b|i|k|s|A|I|K|S|_|7|-| |\n|\t|\v|\x1c|\u0085|\u00a0|\u2028|é|É|ß|ẞ|ı|İ|ſ|\u212a|σ|ς|Σ|٣|²|ⅷ|\u0301|ﬅ|ﬆ|𐐀|𐐨|\u200b", "|")
}

func (d drawn) text() string {
	var b strings.Builder
	for range d.IntN(7) {
		b.WriteString(d.one(someCharacters()))
	}
	return b.String()
}

func (d drawn) expression(depth int) string {
	atoms := []string{
		`\s`, `\S`, `\d`, `\D`, `\w`, `\W`, `\b`, `\B`, `\A`, `\Z`, `^`, `$`, `.`, `\n`, `\x61`, `\u0131`, `\U00010400`, `\-`, `\t`, `\v`, `\101`, `\0`,
		`[a-k]`, `[^i-s]`, `[\w-]`, `[^\W_]`, `[]a]`, `[^]]`, `[\s\d]`, `[İ]`, `[^ı]`, `[À-ÿ]`, `[\u0100-\uffff]`, `[\b]`, `[^\s]`, `[A-Z_]`, `[^a]`, `[\x00-\x7f]`,
	}
	switch n := d.IntN(20); {
	case n < 6 || depth == 0:
		c := d.one(someCharacters())
		if c == "-" || c == "\n" {
			return `\` + c
		}
		return c
	case n < 11:
		return d.one(atoms)
	case n < 14:
		return d.expression(depth-1) + d.one([]string{"*", "+", "?", "*?", "+?", "??", "{2}", "{,2}", "{1,}", "{1,3}", "{,}", "{1,2}?", "{x", "{}"})
	case n < 16:
		return d.one([]string{"(", "(?:", "(?i:", "(?a:", "(?-i:", "(?s-i:", "(?m:", "(?u:"}) + d.expression(depth-1) + ")"
	case n < 17:
		return d.expression(depth-1) + "|" + d.expression(depth-1)
	case n < 18:
		return d.wild()
	}
	return d.expression(depth-1) + d.expression(depth-1)
}

// wild is what one of the two may refuse.
func (d drawn) wild() string {
	return d.one([]string{
		`\z`, `\pL`, `\p{L}`, `\Qa\E`, `\x{61}`, `\C`, `\G`, `\8`, `\1`, `[[:alpha:]]`, `[^[:space:]]`, `[a-\d]`, `[b-a]`, `[a`, `]`, `}`, `{2}`, `a**`, `a*+`, `^*`, `\b+`, `(?i)`, `(?m)a`, `(?U)a`,
		`(?<n>a)`, `(?P<n>a)`, `(?P<1>a)`, `(?P<n>a)(?P<n>b)`, `(?P=n)`, `(?=a)`, `(?<!a)`, `(?>a)`, `(?#c)`, `(?#`, `(?x)a`, `(?x: a)`, `(?L)`, `(?a)`, `(?au)`, `(?i-i:a)`, `(?-a:b)`, `(?-:b)`, `(?)`, `(?`, `(`, `)`,
		`a{2,1}`, `a{1001}`, `a{99999999999}`, `(?:a{100}){300}`, `[[a]`, `[a--b]`, `[a&&b]`, `\ud800`, `\u12`, `\x6`, `\N{DIGIT ONE}`, `\777`, `[\777]`, `[\8]`, `\`, `[\`, `[\A]`, `[\d-a]`, `[a-`, `(?:)*`, `()+`, `(?:^)*`, `a|*`, `\é`, `\ `, `\_`,
	})
}

func (d drawn) question() question {
	q := question{expression: d.expression(4), texts: []string{"", "\n"}}
	if d.IntN(3) == 0 {
		q.expression = d.one([]string{"(?i)", "(?a)", "(?ai)", "(?m)", "(?s)", "(?ims)", "(?u)", "(?#c)(?i)", "(?x)", "(?i)(?m)"}) + q.expression
	}
	for range 8 {
		q.texts = append(q.texts, d.text())
	}
	return q
}

func compareDrawn(t *testing.T, seed uint64, rounds int) {
	t.Helper()
	d := drawn{rand.New(rand.NewPCG(seed, 1))}
	questions := make([]question, rounds)
	for i := range questions {
		questions[i] = d.question()
	}
	read, found, control := compare(t, questions)
	t.Logf("%d of %d expressions read, %d times found; Go's own find %d otherwise", read, rounds, found, control)
	if read < rounds/2 || found < rounds || control < rounds/20 {
		t.Error("what was drawn proves nothing")
	}
}

// TestAsPython: drawn expressions are refused as Python refuses them, and found
// where Python finds them. Its control is that Go's own expressions are not.
func TestAsPython(t *testing.T) {
	t.Parallel()
	compareDrawn(t, 1, 2000)
}

// TestLostDenials: what Go's expressions do not find, and Python's do.
func TestLostDenials(t *testing.T) {
	t.Parallel()
	questions := []question{
		{`a\sb`, []string{"a\u00a0b", "a\x0bb", "a\u0085b", "a\x1cb", "a\u3000b", "a b"}},
		{`^\d+$`, []string{"٣", "٣\n", "7"}},
		{`^\w+$`, []string{"é", "a", "ⅷ", "²"}},
		{`\Bcurl`, []string{"écurl"}},
		{`curl\b`, []string{"curl-x", "curl"}},
		{`(?i)pip`, []string{"pıp", "PİP", "PIP"}},
		{`(?i)ﬅ`, []string{"ﬆ"}},
		{`a$\n`, []string{"a\n"}},
		{`x{,2}y`, []string{"xxy", "y"}},
		{`caf\u00e9`, []string{"café"}},
	}
	_, found, control := compare(t, questions)
	if want := 24; found != want {
		t.Errorf("%d are found, and %d should be", found, want)
	}
	if control < 12 {
		t.Errorf("Go's own expressions lose only %d of them", control)
	}
}
