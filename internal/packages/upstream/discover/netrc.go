package discover

import (
	"os"
	"path/filepath"
	"strings"
)

// netrcFor returns the login and password that the user's netrc has for a
// host. An entry `default` is not used: it would send a password to whoever
// runs the index.
func netrcFor(host string, env []string) (login, password string) {
	paths := []string{Value(env, "NETRC")}
	if home := Value(env, "HOME"); home != "" && paths[0] == "" {
		paths = []string{filepath.Join(home, ".netrc"), filepath.Join(home, "_netrc")}
	}
	for _, path := range paths {
		if path == "" {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // as every client does
		}
		return parseNetrc(string(raw), host)
	}
	return "", ""
}

func parseNetrc(text, host string) (login, password string) {
	words := netrcWords(text)
	here := false
	for i := 0; i < len(words); i++ {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch words[i] {
		case "machine":
			if here {
				return login, password
			}
			here = strings.EqualFold(next, host)
			i++
		case "default":
			if here {
				return login, password
			}
		case "login", "user":
			if here {
				login = next
			}
			i++
		case "password":
			if here {
				password = next
			}
			i++
		case "account":
			i++
		}
	}
	return login, password
}

// netrcWords splits a netrc; comments and macros are left out. Quotes around a
// word are taken off.
func netrcWords(text string) []string {
	var words []string
	macro := false
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			macro = false
			continue
		}
		if macro {
			continue
		}
		for word := range strings.FieldsSeq(line) {
			if word[0] == '#' && (len(words) == 0 || words[len(words)-1] != "password") {
				break
			}
			if word == "macdef" {
				macro = true
				break
			}
			if len(word) > 1 && word[0] == '"' && word[len(word)-1] == '"' {
				word = word[1 : len(word)-1]
			}
			words = append(words, word)
		}
	}
	return words
}
