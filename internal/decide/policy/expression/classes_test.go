package expression

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// pythons is what testdata/tables.py printed.
type pythons struct {
	ranges map[string]func(rune) bool // "d", "s", "w", "unknown"
	cases  map[rune][]rune            // what (?i) takes for the same
}

func readPythons(t *testing.T) pythons {
	t.Helper()
	raw, err := os.ReadFile("testdata/classes.txt")
	if err != nil {
		t.Fatal(err)
	}
	p := pythons{map[string]func(rune) bool{}, map[rune][]rune{}}
	for line := range strings.Lines(string(raw)) {
		words := strings.Fields(line)
		switch words[0] {
		case "#":
		case "case":
			for _, w := range words[2:] {
				r := character(t, words[1])
				p.cases[r] = append(p.cases[r], character(t, w))
			}
		default:
			has := make([]bool, unicode.MaxRune+1)
			for _, w := range words[1:] {
				low, high, _ := strings.Cut(w, "-")
				for r := character(t, low); r <= character(t, high); r++ {
					has[r] = true
				}
			}
			p.ranges[words[0]] = func(r rune) bool { return has[r] }
		}
	}
	return p
}

func character(t *testing.T, text string) rune {
	t.Helper()
	n, err := strconv.ParseInt(text, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	return rune(n)
}

// everything is all characters that Python's tables know.
func (p pythons) everything(yield func(rune) bool) {
	for r := range rune(unicode.MaxRune + 1) {
		if (r < 0xd800 || r > 0xdfff) && !p.ranges["unknown"](r) && !yield(r) {
			return
		}
	}
}

func mustParse(t *testing.T, text string) *Expression {
	t.Helper()
	e, err := Parse(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return e
}

// TestClasses: every character is in the classes that Python has it in.
func TestClasses(t *testing.T) {
	t.Parallel()
	p := readPythons(t)
	for _, name := range []string{"d", "s", "w"} {
		positive, negative := characterSet(t, `\`+name), characterSet(t, `\`+strings.ToUpper(name))
		inside, ascii := characterSet(t, `[^\`+name+`]`), characterSet(t, `(?a)\`+name)
		members := 0
		for r := range p.everything {
			want := p.ranges[name](r)
			inASCII := want && r <= unicode.MaxASCII && (name != "s" || r < 0x1c || r > 0x1f)
			if positive.hasRune(r) != want || negative.hasRune(r) == want || inside.hasRune(r) == want || ascii.hasRune(r) != inASCII {
				t.Errorf("%U is in \\%s: %v, and one of the sets says otherwise", r, name, want)
			}
			if want {
				members++
			}
		}
		if members < 20 {
			t.Errorf("\\%s has %d characters", name, members)
		}
	}
}

// TestCases: (?i) takes for the same what Python takes for the same, as a
// character, as a set, and as what a set leaves out.
func TestCases(t *testing.T) {
	t.Parallel()
	p := readPythons(t)
	var candidates []rune
	for r := range p.everything {
		if p.cases[r] != nil || unicode.SimpleFold(r) != r {
			candidates = append(candidates, r)
		}
	}
	if len(candidates) < 2500 {
		t.Fatalf("%d characters have a case", len(candidates))
	}
	text := string(candidates)
	for i, r := range candidates {
		want := p.cases[r]
		if want == nil {
			want = []rune{r}
		}
		if r > 0xffff { // not read, but ranges with them are
			if _, err := Parse("(?i)" + string(r)); err == nil {
				t.Errorf("(?i)%U is read", r)
			}
			same := characterSet(t, "(?i)[\U00010000-\U0010ffff]")
			if !same.hasRune(r) {
				t.Errorf("a range leaves %U out", r)
			}
			continue
		}
		if got := allOf(characterSet(t, "(?i)"+string(r)), text); !slices.Equal(got, want) {
			t.Errorf("(?i)%U: %U, and Python %U", r, got, want)
		}
		if i%20 != 0 { // each takes a while
			continue
		}
		if got := allOf(characterSet(t, "(?i)[^"+string(r)+"]"), text); len(got) != len(candidates)-len(want) {
			t.Errorf("(?i)[^%U] leaves %d out, and Python %d", r, len(candidates)-len(got), len(want))
		}
	}
	for r := range rune(unicode.MaxASCII + 1) { // among them i, k and s, which others fold to
		quoted := `\x` + fmt.Sprintf("%02x", r)
		if got := allOf(characterSet(t, quoted), text); p.cases[r] != nil && !slices.Equal(got, []rune{r}) {
			t.Errorf("%U without (?i): %U", r, got)
		}
		for _, other := range allOf(characterSet(t, "(?ai)"+quoted), text) {
			if other > unicode.MaxASCII {
				t.Errorf("(?ai)%U takes %U", r, other)
			}
		}
	}
}

// characterSet is the set of an expression that is one character.
func characterSet(t *testing.T, text string) *set {
	t.Helper()
	e := mustParse(t, text)
	for _, s := range e.steps {
		if s.op == take {
			return s.set
		}
	}
	t.Fatalf("%q takes nothing", text)
	return nil
}

func allOf(s *set, text string) []rune {
	var all []rune
	for _, r := range text {
		if s.hasRune(r) {
			all = append(all, r)
		}
	}
	return all
}
