package license_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/license"
)

// mit is the licence's text, and more of a release beside it.
const mit = `Copyright (c) 2012 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation
the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and
to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of
the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO
THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS
IN THE SOFTWARE.
`

func TestLicences(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "LICENSE")) // Apache-2.0
	if err != nil {
		t.Fatal(err)
	}
	text := func(name, text string) []license.Text { return []license.Text{{Name: name, Text: []byte(text)}} }
	for name, c := range map[string]struct {
		claims license.Claims
		want   string
	}{
		"nothing":                       {license.Claims{}, ""},
		"nothing in words":              {license.Claims{Field: "UNKNOWN", Classifiers: []string{"License :: OSI Approved", "Topic :: Text"}}, ""},
		"an expression":                 {license.Claims{Expression: "MIT OR Apache-2.0"}, "MIT OR Apache-2.0"},
		"a name that is no expression":  {license.Claims{Expression: "Apache 2.0"}, "Apache-2.0"},
		"a field":                       {license.Claims{Field: "The MIT License"}, "MIT"},
		"a field nobody knows":          {license.Claims{Field: "Public domain, do what you want"}, "Public domain, do what you want"},
		"a field that is a whole text":  {license.Claims{Field: mit}, "MIT"},
		"a classifier":                  {license.Claims{Classifiers: []string{"License :: OSI Approved :: MIT License"}}, "MIT"},
		"a classifier nobody knows":     {license.Claims{Classifiers: []string{"License :: Other/Proprietary License"}}, "Other/Proprietary License"},
		"a file":                        {license.Claims{Files: text("LICENSE-MIT", mit)}, "MIT"},
		"our own":                       {license.Claims{Files: text("LICENSE", string(own))}, "Apache-2.0"},
		"a family and one of it":        {license.Claims{Field: "BSD", Classifiers: []string{"License :: OSI Approved :: BSD License"}}, "BSD"},
		"a family, and its file":        {license.Claims{Field: "Apache", Files: text("LICENSE", string(own))}, "Apache-2.0"},
		"all say the same":              {license.Claims{Field: "MIT License", Classifiers: []string{"License :: OSI Approved :: MIT License"}, Files: text("LICENSE", mit)}, "MIT"},
		"one of two":                    {license.Claims{Expression: "MIT OR Apache-2.0", Files: text("LICENSE-MIT", mit)}, "MIT OR Apache-2.0"},
		"a file in words nobody knows":  {license.Claims{Files: text("COPYING", "ask me first")}, "not recognised: it is in COPYING"},
		"elsewhere":                     {license.Claims{Expression: "SEE LICENSE IN terms.txt"}, "not recognised: it is in terms.txt"},
		"elsewhere, and there":          {license.Claims{Expression: "SEE LICENSE IN LICENSE.md", Files: text("LICENSE.md", mit)}, "MIT"},
		"metadata against the file":     {license.Claims{Field: "MIT", Files: text("LICENSE", string(own))}, "MIT by its metadata, Apache-2.0 by LICENSE"},
		"metadata against classifiers":  {license.Claims{Field: "MIT", Classifiers: []string{"License :: OSI Approved :: GNU General Public License v3 (GPLv3)"}}, "MIT by its metadata, GPL-3.0-only by its classifiers"},
		"a file that has more":          {license.Claims{Expression: "MIT", Files: text("LICENSE", mit+"\n\n"+string(own))}, "MIT by its metadata, MIT AND Apache-2.0 by LICENSE"},
		"a text that is not known":      {license.Claims{Expression: "MIT", Files: text("LICENSE", "Pay a million a day.")}, "MIT by its metadata, not recognised in LICENSE"},
		"a known text elsewhere":        {license.Claims{Expression: "SEE LICENSE IN ./LICENSE", Files: text("LICENSE", mit)}, "MIT"},
		"another text than is named":    {license.Claims{Expression: "SEE LICENSE IN EULA.pdf", Files: text("LICENSE", mit)}, "MIT by LICENSE, not recognised in EULA.pdf"},
		"a text for an expression":      {license.Claims{Expression: mit}, "MIT"},
		"later versions are no quarrel": {license.Claims{Field: "GPL-3.0", Classifiers: []string{"License :: OSI Approved :: GNU General Public License v3 or later (GPLv3+)"}}, "GPL-3.0"},
	} {
		if got := c.claims.String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestALotOfClaims: however much a release says, it takes no time that grows with the square of it.
func TestALotOfClaims(t *testing.T) {
	t.Parallel()
	var words, classifiers []string
	for i := range 200_000 {
		words, classifiers = append(words, fmt.Sprint("l", i)), append(classifiers, fmt.Sprint("License :: l", i))
	}
	began := time.Now()
	told := license.Claims{Expression: strings.Join(words, " "), Classifiers: classifiers}.String()
	if took := time.Since(began); took > 5*time.Second || !strings.Contains(told, "l19 AND and more by its classifiers") {
		t.Errorf("%.200q after %s", told, took)
	}
}

// TestWhichFilesHaveALicence: by their names, and no more of them than there is room for.
func TestWhichFilesHaveALicence(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"LICENSE": true, "LICENCE.txt": true, "license.md": true, "COPYING": true, "MIT-LICENSE": true, "LICENSE-APACHE": true, "LICENSE.rst": true,
		"license.py": false, "licenses.json": false, "README": false, "licensed.txt": false, "UNLICENSE": true,
	} {
		if got := license.IsFile(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	var c license.Claims
	for range 100 {
		if err := c.Collect("LICENSE", func(most int64) ([]byte, error) { return []byte(strings.Repeat("x", int(most))), nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.Files) != license.MaxFiles || len(c.String()) > 1_000 {
		t.Errorf("%d files, %q", len(c.Files), c.String())
	}
}
