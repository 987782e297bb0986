package mounts

import "testing"

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
		"*.pem\n!open.pem":     {"a.pem": true, "open.pem": false},
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
		"  a b  ":              {"a b": true, "a b ": false},
		`a\ `:                  {"a ": true, "a": false},
		"crlf\r\nb":            {"crlf": true, "b": true},
		"café":                 {"café": true},
	} {
		p, err := parsePatterns("file", []byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		for name, want := range names {
			if p.hide(name) != want {
				t.Errorf("%q hides %q: %t", text, name, !want)
			}
		}
	}
}
