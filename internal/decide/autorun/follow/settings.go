package follow

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
)

// Some programs that run by themselves, such as the checkers of editors, keep their settings in a file
// of their own, which is known by its name, or, in the same words, in a file that has much else. The
// second is as the first where these words are others than they were; and what they name is so anyway.

// sections are the tables of a file, by its name, whose settings have something run: those of TOML and
// INI by the begin of their names, those of JSON by their keys, of the first level or of an object in it.
// Each table of INI has the settings of "default" as well.
func sections(base string) (tables, keys []string) {
	switch base {
	case "pyproject.toml":
		return []string{"tool.pylint", "tool.mypy", "tool.flake8", "tool.sqlfluff", "tool.pyright", "tool.basedpyright", "tool.gitlint", "tool.cspell"}, nil
	case "cargo.toml": // what cargo builds and runs first, and what it loads into the compiler, also for editors
		return []string{"package.build", "project.build", "lib.proc-macro", "lib.proc_macro", "lib.plugin", "lib.crate-type", "lib.crate_type", "lib.path"}, nil
	case "setup.cfg", "tox.ini":
		return []string{"pylint", "mypy", "flake8", "sqlfluff", "master", "main", "default"}, nil
	case "package.json":
		return nil, []string{
			"eslintConfig", "prettier", "stylelint", "xo", "cspell", "remarkConfig", "rehypeConfig", "retextConfig", "textlint", "markdownlint-cli2", "jest", "postcss", "graphql", "apollo",
			"husky", "gitHooks", "lint-staged", "nano-staged", "simple-git-hooks", "git-hooks", "pre-commit", "pre-push", "commit-msg", "commitlint", "config.ghooks", "config.pre-git",
		}
	case "composer.json":
		return nil, []string{"extra.captainhook", "extra.grumphp", "extra.hooks"} // git's, which installs put there
	case "tsconfig.json", "jsconfig.json":
		return nil, []string{"compilerOptions.plugins"} // of the language server
	}
	return nil, nil
}

// settings are what of a file has something run by itself; nil: nothing.
func settings(at string, text []byte) []byte {
	base := path.Base(at)
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // which most readers skip
	tables, keys := sections(base)
	switch {
	case tables != nil && path.Ext(base) == ".toml":
		return inTOML(text, tables)
	case tables != nil:
		return inTables(text, tables)
	case keys != nil:
		return underKeys(text, keys)
	}
	return nil
}

// inTOML are the settings whose names, with the tables that they are in, begin so, in whichever of
// TOML's spellings. Of what is no TOML it is the whole text: others may read it.
func inTOML(text []byte, begins []string) []byte {
	var parser unstable.Parser
	parser.Reset(text)
	var found []byte
	table := ""
	for parser.NextExpression() {
		n := parser.Expression()
		if n.Kind != unstable.KeyValue {
			if table = nameOf(n.Key()); isWithin(table+".", begins) { // one more of a list, or an empty one
				found = append(append(found, table...), '\n')
			}
			continue
		}
		name := nameOf(n.Key())
		if table != "" {
			name = table + "." + name
		}
		if isWithin(name, begins) {
			found = append(append(found, name...), '\n')
			found = appendTOML(found, n.Value())
		}
	}
	if parser.Error() != nil {
		return text
	}
	return found
}

// isWithin tells whether a name is one of a section, or has one in it: the value of "tool" may be a
// table with everything.
func isWithin(name string, begins []string) bool {
	return slices.ContainsFunc(begins, func(begin string) bool {
		return strings.HasPrefix(name, begin) || strings.HasPrefix(begin, strings.TrimSuffix(name, ".")+".") && !strings.HasSuffix(name, ".")
	})
}

// nameOf is a key of TOML, as it is read.
func nameOf(key unstable.Iterator) string {
	var parts []string
	for key.Next() {
		parts = append(parts, string(bytes.ToLower(key.Node().Data)))
	}
	return strings.Join(parts, ".")
}

// appendTOML adds a value, with all that is in it, each part in a line.
func appendTOML(to []byte, n *unstable.Node) []byte {
	to = append(append(to, n.Data...), '\n')
	for parts := n.Children(); parts.Next(); {
		to = appendTOML(to, parts.Node())
	}
	return to
}

// inTables are the lines of INI's tables whose names begin so. The head of a table that is indented may
// be the continuation of a value: it may begin one of these, and ends none.
func inTables(text []byte, begins []string) []byte {
	var found []byte
	inside := false
	for line := range bytes.Lines(bytes.ReplaceAll(text, []byte{'\r'}, []byte{'\n'})) { // each ends a line
		if name, is := bytes.CutPrefix(bytes.TrimSpace(line), []byte("[")); is {
			name = bytes.ToLower(bytes.TrimLeft(name, " \t"))
			begun := slices.ContainsFunc(begins, func(begin string) bool { return bytes.HasPrefix(name, []byte(begin)) })
			inside = begun || inside && line[0] != '['
		}
		if inside && len(bytes.TrimSpace(line)) > 0 {
			found = append(found, line...)
		}
	}
	return found
}

// underKeys are the values of keys of JSON. Of what is no JSON, comments and all, it is the whole text
// if it has one of the keys, or may have it in other letters.
func underKeys(text []byte, keys []string) []byte {
	var whole map[string]json.RawMessage
	plain := json.Unmarshal(text, &whole) == nil
	var found []byte
	for _, key := range keys {
		outer, inner, nested := strings.Cut(key, ".")
		if !plain {
			if last := key[strings.LastIndexByte(key, '.')+1:]; bytes.Contains(text, []byte(last)) || bytes.ContainsAny(text, "\\\x00") {
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
// A file that is not read may have any: a link, and what is larger than a file of settings is.
func (s *search) lookInside(at string) {
	name := s.all[at]
	if tables, keys := sections(path.Base(at)); tables == nil && keys == nil || s.files.Scope(name) == autorun.ScopeSealed {
		return
	}
	if s.tree.Unread != nil && s.tree.Unread(name) {
		s.markPath(name, autorun.Lead{Level: autorun.Started})
		return
	}
	var before []byte
	for i, text := range s.tree.Texts(name) {
		found := settings(at, text)
		if i > 0 && !bytes.Equal(found, before) {
			s.markPath(name, autorun.Lead{Level: autorun.Started})
		}
		if before = found; found != nil {
			s.readText(found, s.dirsAbove(name), autorun.Lead{Level: autorun.Started, Scope: autorun.ScopeDirs})
		}
	}
}
