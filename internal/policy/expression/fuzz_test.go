package expression

import "testing"

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
