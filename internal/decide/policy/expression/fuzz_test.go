package expression

import (
	"strings"
	"testing"
)

// FuzzParse: any text is an expression or an error, and is found or not.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`a(?i:b)*|[^\w-]{2,}$`, `(?P<n>\u0131)\b`, `[]`, `\`, `(?`, `a{1000}{2`, `((((`, "\xff"} {
		f.Add(text, "ab")
	}
	f.Fuzz(func(_ *testing.T, text, in string) {
		if e, err := Parse(text); err == nil {
			e.Find(in)
		}
	})
}

// TestFindUntil gives up when it is told to, within 64 KiB, and finds what lies before that.
func TestFindUntil(t *testing.T) {
	e, err := Parse("needle")
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int]bool{0: true, 100 << 10: true, 300 << 10: false} {
		asked := 0
		text := strings.Repeat("x", at) + "needle" + strings.Repeat("x", 400<<10)
		found, _, givenUp := e.FindUntil(text, func() bool { asked++; return asked > 3 })
		if found != want || givenUp == want {
			t.Errorf("at %d: found %v, given up %v", at, found, givenUp)
		}
	}
}
