package exchange

import (
	"html"
	"mime/quotedprintable"
	"strings"
	"testing"
)

// TestAMailInQuotedPrintable: a host that gives a mail back as it was sent wraps its lines wherever
// they are full, and whoever wrote the text before decides where that is. docs/network.md promises
// quoted-printable around one other way of escaping. The control: a secret that nothing escapes is
// found wherever the line is wrapped.
func TestAMailInQuotedPrintable(t *testing.T) {
	t.Parallel()
	const secret = "hunter2/of+the<house>'s=key"
	for way, escaped := range map[string]string{
		"as it is":               secret,
		"as PHP":                 strings.ReplaceAll(secret, "/", `\/`),
		"as .NET":                strings.NewReplacer("+", `\u002B`, "<", `\u003C`, ">", `\u003E`, "'", `\u0027`).Replace(secret),
		"as a shell":             strings.NewReplacer("<", `\<`, ">", `\>`, "'", `\'`).Replace(secret),
		"as markup":              html.EscapeString(secret),
		"as hexadecimal numbers": strings.NewReplacer("/", "&#x2f;", "+", "&#x2B;", "<", "&#x003c;", ">", "&#x3e;", "'", "&#X27;", "=", "&#x3D;").Replace(secret),
		"as JSON's numbers":      strings.NewReplacer("/", `\u002f`, "+", `\u002B`, "=", `\u003D`).Replace(secret),
		"as numbers":             strings.NewReplacer("/", "&#47;", "+", "&#43;", "<", "&#60;", ">", "&#62;", "'", "&#39;", "=", "&#61;").Replace(secret),
	} {
		var through []int
		for before := range 76 {
			var mail strings.Builder
			w := quotedprintable.NewWriter(&mail)
			if _, err := w.Write([]byte(strings.Repeat("q", before) + escaped + " is what was sent")); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			got, _ := (&scan{needles: newNeedles(map[string][]string{"one": {secret}})}).takeMore([]byte(mail.String()), true)
			if string(got) == mail.String() {
				through = append(through, before)
			}
		}
		if len(through) > 0 {
			t.Errorf("%s, it comes whole where the line before it has %v letters", way, through)
		}
	}
}
