package pep440_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref/pep440"
)

// judge is what pip's own copy of `packaging` says about every version and
// every pair of a specifier and a version.
const judge = `
import json, sys
from pip._vendor.packaging.version import Version
from pip._vendor.packaging.specifiers import Specifier
asked = json.load(sys.stdin)
def normal(v):
    try: return str(Version(v))
    except Exception: return ""
def order(a, b):
    a, b = Version(a), Version(b)
    return (a > b) - (a < b)
valid = [v for v in asked["versions"] if normal(v)]
def row(s):
    try: clauses = [Specifier(c) for c in s.split(",")]
    except Exception: return "invalid"
    return "".join("1" if all(c.contains(Version(v), prereleases=True) for c in clauses) else "0" for v in valid)
json.dump({
    "normal": [normal(v) for v in asked["versions"]],
    "order": [[order(a, b) for b in valid] for a in valid],
    "match": [row(s) for s in asked["specifiers"]],
}, sys.stdout)
`

type answers struct {
	Normal []string `json:"normal"`
	Order  [][]int  `json:"order"`
	Match  []string `json:"match"`
}

func versions() []string {
	return []string{
		"0", "1", "1.0", "1.0.0", "1.0.1", "1.1", "1.10", "2", "2.0", "2.31.0", "2.99", "3", "3.0", "3.0.1", "4", "10.2",
		"1.0a1", "1.0.a1", "1.0-alpha.1", "1.0b2", "1.0beta2", "1.0rc1", "1.0c1", "1.0pre1", "1.0-preview_1", "1.0RC2",
		"1.0.dev1", "1.0a1.dev2", "1.0.post1", "1.0-1", "1.0.rev2", "1.0r3", "1.0.post1.dev3", "1.0rc1.post2", "1.0a", "1.0.dev", "1.0.post",
		"3.0a1", "3.0.0rc1", "3.0.dev0", "3.0.0.dev1", "3.dev0", "3.0.post1", "2.99rc1", "4.0b1", "2.0b1.post1.dev2",
		"1!0.5", "1!2.0", "1!3.0rc1", "1.0+local", "1.0+ubuntu.1", "1.0+ubuntu-1", "1.0+1", "1.0+10", "1.0+9", "1.0+1.a", "1.0+a.1", "3.0+cu118",
		"v1.0", "  1.0 ", "1.0\n", "V2.0", "01.02", "2024.8.30", "20240830", "99999999999999",
		"", "x", "1.x", "1..0", "1.0-", "1.0+", "1.0+a..b", "1.0+é", "1!", "!1", "1.0.0a1b1", "1.0 a", "1,0", "--1", "1.0.post1.post2", "٣.0",
	}
}

func specifiers() []string {
	list := []string{
		"==1.*", "==1.0.*", "==2.31.*", "!=1.*", "!=3.*", "==1!2.*", "~=1.0", "~=2.31.0", "~=2.0", "~=1.0.1",
		"==1.0+local", "==1.0+ubuntu.1", "!=1.0+1", "===1.0", "===3.0.0rc1",
		">=2.31,<3", ">=1.0,!=1.0.1,<2", ">=1,<=3.0,!=2.*", "<3,>=2.99rc1", ">=3.0.0rc1,<4",
		"==", "1.0", "=1.0", "=>1.0", "^1.0", "~1.0", "<1.*", ">=2.x", "~=1", "~=1.0+a", "<1.0+a", ">=1.0+a", "==1.0.dev1.*", "==1.0+a.*", "==x", ">=1 0", "*", "2.x",
	}
	bounds := []string{"0", "1", "1.0", "1.0.1", "2.31.0", "3", "3.0", "4", "1!2.0", "2024.8.30"}
	for _, op := range []string{"==", "!=", "<", "<=", ">", ">="} {
		for _, b := range bounds {
			list = append(list, op+b, op+" "+b)
		}
	}
	// The exclusive operators on these changed between releases of packaging.
	for _, op := range []string{"==", "!=", "<=", ">="} {
		for _, b := range []string{"1.0a1", "1.0rc1", "1.0.dev1", "1.0.post1", "3.0.0rc1", "3.dev0", "1.0rc1.post2"} {
			list = append(list, op+b)
		}
	}
	return append(list, "<3.0.0rc1", "<1.0rc1", "<1.0.dev1")
}

// TestAgainstPackaging needs python3 with pip, as the whole suite does.
func TestAgainstPackaging(t *testing.T) {
	asked, err := json.Marshal(map[string][]string{"versions": versions(), "specifiers": specifiers()})
	if err != nil {
		t.Fatal(err)
	}
	python := exec.CommandContext(t.Context(), "python3", "-c", judge)
	python.Stdin = bytes.NewReader(asked)
	var complaint bytes.Buffer
	python.Stderr = &complaint
	out, err := python.Output()
	if err != nil {
		t.Fatalf("python3 with pip is needed to compare with packaging: %v\n%s", err, complaint.String())
	}
	var want answers
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	if got := answer(); !cmp.Equal(want, got) {
		t.Errorf("packaging and we differ (-packaging +ours):\n%s", cmp.Diff(want, got))
		explain(t, want, got)
	}
}

func valid() (texts []string, parsed []pep440.Version) {
	for _, text := range versions() {
		if v, ok := pep440.Parse(text); ok {
			texts, parsed = append(texts, text), append(parsed, v)
		}
	}
	return texts, parsed
}

func answer() answers {
	var a answers
	for _, text := range versions() {
		normal := ""
		if v, ok := pep440.Parse(text); ok {
			normal = v.String()
		}
		a.Normal = append(a.Normal, normal)
	}
	_, parsed := valid()
	for _, v := range parsed {
		row := make([]int, 0, len(parsed))
		for _, o := range parsed {
			row = append(row, v.Compare(o))
		}
		a.Order = append(a.Order, row)
	}
	for _, text := range specifiers() {
		a.Match = append(a.Match, matchRow(text, parsed))
	}
	return a
}

func matchRow(text string, parsed []pep440.Version) string {
	spec, ok := pep440.ParseSpecifier(text)
	if !ok {
		return "invalid"
	}
	row := make([]byte, 0, len(parsed))
	for _, v := range parsed {
		if spec.Match(v) {
			row = append(row, '1')
		} else {
			row = append(row, '0')
		}
	}
	return string(row)
}

func explain(t *testing.T, want, got answers) {
	t.Helper()
	texts, _ := valid()
	for i, spec := range specifiers() {
		if len(want.Match[i]) != len(got.Match[i]) {
			t.Logf("%q: packaging says %s, we say %s", spec, want.Match[i], got.Match[i])
			continue
		}
		for j := range got.Match[i] {
			if len(got.Match[i]) == len(texts) && want.Match[i][j] != got.Match[i][j] {
				t.Logf("%q with %q: packaging says %c, we say %c", spec, texts[j], want.Match[i][j], got.Match[i][j])
			}
		}
	}
}

// TestCapExcludesPreReleases is the case that some libraries get wrong.
func TestCapExcludesPreReleases(t *testing.T) {
	spec, ok := pep440.ParseSpecifier("<3")
	if !ok {
		t.Fatal("<3 is a specifier")
	}
	for text, want := range map[string]bool{
		"2.99": true, "2.99rc1": true, "3.0.0rc1": false, "3.0.0.dev1": false, "3a1": false, "3": false, "1!1": false,
	} {
		v, ok := pep440.Parse(text)
		if !ok || spec.Match(v) != want {
			t.Errorf("<3 matches %s: %v, want %v", text, !want, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, v := range versions() {
		f.Add(v, ">=1.0,<2")
	}
	for _, s := range specifiers() {
		f.Add("1.0rc1", s)
	}
	f.Fuzz(func(t *testing.T, version, specifier string) {
		v, ok := pep440.Parse(version)
		spec, okSpec := pep440.ParseSpecifier(specifier)
		if ok {
			again, ok := pep440.Parse(v.String())
			if !ok || again.Compare(v) != 0 || again.String() != v.String() {
				t.Fatalf("%q has the normal form %q, which is another version", version, v.String())
			}
		}
		if ok && okSpec {
			spec.Match(v)
		}
	})
}

func BenchmarkParseAndMatch(b *testing.B) {
	spec, _ := pep440.ParseSpecifier(">=2.31,<3")
	for b.Loop() {
		v, _ := pep440.Parse("2.31.0")
		spec.Match(v)
	}
}
