package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKnownFailuresAreOfTheirSuite: a test that is known to fail hides no other of its name, and what fails no
// more, or is not there, is told.
func TestKnownFailuresAreOfTheirSuite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	known, results := filepath.Join(dir, "known.txt"), filepath.Join(dir, "results.xml")
	const list = "# a comment: with a colon\ntests.*.test_java::test_env: no Java\ntests.sync.test_a::test_mended: no more\ntests/b.test.ts::* > old one: it went\n"
	const ran = `<testsuites><testsuite>
<testcase classname="tests.async.test_java" name="test_env"><failure message="as known"/></testcase>
<testcase classname="tests.sync.test_bash" name="test_env"><failure message="news"/></testcase>
<testcase classname="tests.sync.test_a" name="test_mended"/>
<testcase classname="tests.sync.test_a" name="test_skipped"><skipped/></testcase>
</testsuite></testsuites>`
	for path, text := range map[string]string{known: list, results: ran} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "python3", "failures.py", known, results).CombinedOutput()
	if err == nil {
		t.Error("there is a new failure, and it ends with 0")
	}
	const want = `RESULTS {'passed': 1, 'failed': 2, 'skipped': 1}
NEW tests.sync.test_bash::test_env news
passes now: tests.sync.test_a::test_mended
is not there: tests/b.test.ts::* > old one
`
	if got := strings.ReplaceAll(string(out), results, "RESULTS"); got != want {
		t.Errorf("%s", got)
	}
}

// TestEachKnownFailureIsDocumented: docs/compatibility.md names each test of the SDKs' makers that is known to
// fail here, as its suite does, and in its tables no other.
func TestEachKnownFailureIsDocumented(t *testing.T) {
	t.Parallel()
	known, err := os.ReadFile("known-failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, there := strings.Cut(string(doc), "## The SDKs' own tests")
	if !there {
		t.Fatal("docs/compatibility.md has no section of the SDKs' own tests")
	}
	named := map[string]bool{}
	for line := range strings.SplitSeq(string(known), "\n") {
		pattern, _, isKnown := strings.Cut(line, ": ")
		if !isKnown || strings.HasPrefix(line, "#") {
			continue
		}
		_, name, _ := strings.Cut(pattern, "::")
		name = strings.TrimPrefix(name, "*")
		named[name] = true
		if !strings.Contains(section, `"`+name+`"`) && !strings.Contains(section, "`"+name+"`") {
			t.Errorf("the documentation does not name %q", name)
		}
	}
	for _, quote := range []string{`"`, "`"} {
		for i, text := range strings.Split(section, quote) {
			isTest := quote == `"` || strings.HasPrefix(text, "test_")
			if i%2 == 1 && isTest && text != "test_java" && !named[text] {
				t.Errorf("the documentation names %q, which known-failures.txt has not", text)
			}
		}
	}
}
