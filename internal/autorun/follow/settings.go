package follow

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/autorun"
)

// Some programs that run by themselves, such as the checkers of editors, keep their settings in a file
// of their own, which is known by its name, or, in the same words, in a file that has much else. The
// second is as the first where these words are others than they were; and what they name is so anyway.

// sections are the tables of a file, by its name, whose settings have something run: those of TOML and
// INI by the begin of their names, those of JSON by their keys, of the first level or of an object in it.
func sections(base string) (tables, keys []string) {
	switch base {
	case "pyproject.toml":
		return []string{"tool.pylint", "tool.mypy", "tool.flake8"}, nil
	case "setup.cfg", "tox.ini":
		return []string{"pylint", "mypy", "flake8", "master", "main"}, nil
	case "package.json":
		return nil, []string{"eslintConfig", "prettier", "stylelint", "husky", "lint-staged", "simple-git-hooks", "pre-commit", "commitlint"}
	case "tsconfig.json", "jsconfig.json":
		return nil, []string{"compilerOptions.plugins"} // of the language server
	}
	return nil, nil
}

// settings are what of a file has something run by itself; nil: nothing.
func settings(at string, text []byte) []byte {
	base := path.Base(at)
	if base == "cargo.toml" {
		return buildScript(text)
	}
	tables, keys := sections(base)
	switch {
	case tables != nil:
		return inTables(text, tables)
	case keys != nil:
		return underKeys(text, keys)
	}
	return nil
}

// inTables are the lines of tables whose names begin so.
func inTables(text []byte, begins []string) []byte {
	var found []byte
	inside := false
	for line := range bytes.Lines(text) {
		if name, is := bytes.CutPrefix(bytes.TrimSpace(line), []byte("[")); is {
			inside = false
			name = bytes.ToLower(bytes.TrimLeft(name, "[ \t\"'"))
			for _, begin := range begins {
				inside = inside || bytes.HasPrefix(name, []byte(begin))
			}
		}
		if inside {
			found = append(found, line...)
		}
	}
	return found
}

// buildScript is which program of its own cargo builds and runs first, also for editors.
func buildScript(text []byte) []byte {
	var found []byte
	for line := range bytes.Lines(text) {
		key, _, is := bytes.Cut(line, []byte("="))
		if is && string(bytes.Trim(bytes.TrimSpace(key), `"'`)) == "build" {
			found = append(found, line...)
		}
	}
	return found
}

// underKeys are the values of keys of JSON. Of what is no JSON, comments and all, it is the whole text
// if it has one of the keys.
func underKeys(text []byte, keys []string) []byte {
	var whole map[string]json.RawMessage
	plain := json.Unmarshal(text, &whole) == nil
	var found []byte
	for _, key := range keys {
		outer, inner, nested := strings.Cut(key, ".")
		if !plain {
			if last := key[strings.LastIndexByte(key, '.')+1:]; bytes.Contains(text, []byte(last)) {
				return text
			}
			continue
		}
		value := whole[outer]
		if nested {
			var within map[string]json.RawMessage
			_ = json.Unmarshal(value, &within) // what is no object has no members
			value = within[inner]
		}
		if len(value) > 0 {
			found = append(append(found, value...), '\n')
		}
	}
	return found
}

// lookInside raises a file in which settings are others than they were, and follows what they name.
func (s *search) lookInside(at string) {
	name, base := s.all[at], path.Base(at)
	if tables, keys := sections(base); tables == nil && keys == nil && base != "cargo.toml" || s.files.Scope(name) == autorun.ScopeSealed {
		return
	}
	var before []byte
	for i, text := range s.tree.Texts(name) {
		found := settings(at, text)
		if i > 0 && !bytes.Equal(found, before) {
			s.mark(name, autorun.Lead{Level: autorun.Started})
		}
		if before = found; found != nil {
			s.read(found, s.bases(name), autorun.Lead{Level: autorun.Started, Scope: autorun.ScopeDirs})
		}
	}
}
