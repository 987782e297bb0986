package mountpolicy

import (
	"fmt"
	"strings"
	"testing"
)

// TestPatterns: gitignore's syntax, in which nothing has a regular expression's meaning. A directory's name ends in a slash.
func TestPatterns(t *testing.T) {
	for text, names := range map[string]map[string]bool{
		"*.pem":                {"a.pem": true, "b/a.pem": true, "apem": false, "a.pem/x": true, "a.pem.txt": false},
		"secret.env":           {"secret.env": true, "secretXenv": false, "line\nbreak/secret.env": true},
		"/top":                 {"top": true, "a/top": false},
		"build/":               {"build/": true, "build": false, "a/build/": true},
		"conf/key.pem":         {"conf/key.pem": true, "a/conf/key.pem": true, "key.pem": false},
		"conf/*.pem":           {"conf/key.pem": true, "a/conf/key.pem": false},
		"**/x":                 {"x": true, "a/b/x": true},
		"a/**":                 {"a/": true, "a/b/c": true, "b/a/c": true},
		"a/**/b":               {"a/b": true, "a/x/y/b": true, "ab": false},
		"?at":                  {"cat": true, "at": false, "/at": false},
		"*.pem\n!open.pem":     {"a.pem": true, "open.pem": false, "a/b/open.pem": false},
		"!a\na":                {"a": true},
		"# no\n\\#yes\n\\!yes": {"# no": false, "#yes": true, "!yes": true},
		"notes++.txt":          {"notes++.txt": true, "notess.txt": false},
		"a(b":                  {"a(b": true},
		"a{3}":                 {"a{3}": true, "aaa": false},
		"a|b":                  {"a|b": true, "b": false},
		"$cash^":               {"$cash^": true},
		`\.env`:                {".env": true, "xenv": false, `\.env`: false},
		`\d`:                   {"d": true, "1": false},
		`a\*b`:                 {"a*b": true, "axb": false},
		"[a-c]x":               {"bx": true, "dx": false, "[a-c]x": false},
		"[!a-c]x":              {"dx": true, "bx": false, "/x": false},
		"[^a]x":                {"bx": true, "ax": false},
		"[]]x":                 {"]x": true},
		"[a":                   {"[a": true, "a": false},
		`[\]]x`:                {"]x": true, `\x`: false},
		"[[:digit:]]x":         {"1x": true, "ax": false},
		"  a b  ":              {"a b": true, "  a b": true, "a b ": false},
		" #a\n #b":             {"#a": true, " #a": true, "a": false},
		`a\ `:                  {"a ": true, "a": false},
		"crlf\r\nb":            {"crlf": true, "b": true},
		"café":                 {"café": true},
		"[[:]x":                {"[x": true, ":x": true, "ax": false},
		"?":                    {"a": true, "\u00e9": false},
		"??":                   {"\u00e9": true},
		"[\u00e9][\u00e9]":     {"\u00e9": true},
		"a/foo**\\/bar":        {"a/foox/y/bar": true},

		// A class has no slash in it, whatever lies between its ends, and nothing is taken back by half of one.
		"b\n!a[+-9]b":           {"a/b": true, "a1b": false},
		"x\n!v[[:punct:]]x":     {"v/x": true},
		"pub\n!*[[:print:]]pub": {"keys/pub": true},
		"*\n![x":                {"[x": true, "x": true},
		"*\n!?":                 {"\u00e9": true, "a": false},
		"x\n !x":                {"x": true, " !x": true},

		// A mark at the file's begin is no part of the first pattern.
		"\ufeff.env":       {".env": true},
		"\ufeff# no\n.env": {".env": true, "# no": false},

		// All, from the top on.
		"/**":  {"a": true, "a/b": true},
		"/**a": {"a": true, "xa": true},

		// A pattern takes back what it names and not what is in that, in which others hide files by their names.
		"*.env\n!conf/":         {"conf/": false, "conf/a.env": true},
		"*.env\n!conf":          {"conf/": false, "conf/a.env": true, "conf/deep/a.env": true},
		"*.env\n!/conf/**":      {"conf/a.env": false, "conf/b/a.env": false, "x/conf/a.env": true},
		"*.env\n!conf/a.env":    {"conf/a.env": false, "x/conf/a.env": true},
		"*.env\n!conf/**/a.env": {"conf/a.env": false, "conf/x/y/a.env": false, "x/conf/a.env": true},
		"*.env\n!**/a.env":      {"a.env": false, "x/y/a.env": false, "b.env": true},
		"*.env\n!x**/a.env":     {"xy/a.env": false, "x/y/a.env": true, "xa.env": true},
		"secrets\n!secrets/**":  {"secrets/": true, "secrets/a": true},
		"conf/\n!conf/*":        {"conf/": true, "conf/a": true},
		"conf/\n!conf/**":       {"conf/": true, "conf/a": true},
		"/*\n!/src":             {"src/": false, "src/a": false, "b": true, "b/src": true},
		"build/\n!build/keep":   {"build/keep": true},
	} {
		p, err := parsePatterns("file", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		for name, want := range names {
			if hidesWithWay(p, name) != want {
				t.Errorf("%q hides %q: %t", text, name, !want)
			}
		}
	}
}

// hidesWithWay asks for the directories on the way to a name before it, as whoever looks through a tree does.
func hidesWithWay(p patterns, name string) bool {
	for at := range strings.TrimSuffix(name, "/") {
		if name[at] == '/' && matchesPath(p, name[:at], true) {
			return true
		}
	}
	return p.hidesPath(name)
}

// TestPatternsRefuse: what would hide nothing, without a word, is refused.
func TestPatternsRefuse(t *testing.T) {
	for _, line := range []string{"!", "/", "!/", "//", "s\x00e\x00", "\xff\xfes", `a\`, "[z-a]", "[[:none:]]", "![z-a]", "![[:^digit:]]", "![[:word:]]"} {
		if _, err := parsePatterns("file", []byte("ok\n"+line)); !strings.Contains(fmt.Sprint(err), "line 2") {
			t.Errorf("%q: %v", line, err)
		}
	}
}
