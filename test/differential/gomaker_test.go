package differential

import (
	"fmt"
	"slices"
	"strings"
)

// goMaker makes modules and workspaces.
type goMaker struct {
	dice
	*madeProject
	required map[string][]string // versions of modules that are asked for, unless they are excluded
	excluded map[string]bool     // a path, a blank and a version
	replaced map[string]bool     // paths
}

func newGoMaker(d dice) goMaker {
	return goMaker{d, newProject(), map[string][]string{}, map[string]bool{}, map[string]bool{}}
}

// finish says which names are asked for without a condition: what one module of a workspace replaces or excludes is so for all.
func (m goMaker) finish() *madeProject {
	for path, versions := range m.required {
		if !m.replaced[path] && slices.ContainsFunc(versions, func(v string) bool { return !m.excluded[path+" "+v] }) {
			m.firm[path] = true
		}
	}
	return m.madeProject
}

func (m goMaker) path() string {
	return pick(m.dice, "example.com/a", "example.com/b", "example.com/B", "example.com/c/v2", "gopkg.in/d.v1", "corp.example/x", "example.com/e/f", "corp.example/one", "corp.example/two")
}

// version is one that a module of a path can have.
func (m goMaker) version(path string) string {
	switch {
	case strings.HasSuffix(path, "/v2"):
		return pick(m.dice, "v2.0.0", "v2.3.4")
	case strings.HasSuffix(path, ".v1"):
		return pick(m.dice, "v1.0.0", "v1.2.3")
	}
	return pick(m.dice, "v1.0.0", "v1.2.3", "v0.1.0", "v1.0.0-rc.1", "v0.0.0-20200101000000-0123456789ab", "v2.0.0+incompatible")
}

// word is a path in one of the forms of a go.mod.
func (m goMaker) word(text string) string {
	if m.in(100) {
		return "`" + text + "`" // which go refuses
	}
	return pick(m.dice, text, text, `"`+text+`"`)
}

// lines are a directive's, alone or in a block.
func (m goMaker) lines(verb string, lines []string) string {
	end := func() string { return pick(m.dice, "\n", "\n", " // a comment\n", "\n\n") }
	var text strings.Builder
	if m.in(2) {
		for _, l := range lines {
			text.WriteString(verb + " " + l + end())
		}
		return text.String()
	}
	text.WriteString(verb + " (\n")
	for _, l := range lines {
		text.WriteString("\t" + l + end())
	}
	return text.String() + ")\n"
}

func (m goMaker) requires() string {
	var lines []string
	for range m.IntN(5) {
		path := m.path()
		indirect := pick(m.dice, "", "", "", " // indirect", " // indirect; why", "// indirect", " // not indirect")
		version := m.version(path)
		if strings.HasPrefix(strings.TrimLeft(indirect, " /"), "indirect") {
			m.brought[path] = true
		} else {
			m.required[path] = append(m.required[path], version)
		}
		lines = append(lines, m.word(path)+" "+m.word(version)+indirect)
	}
	return m.lines("require", lines)
}

// replaces are replacements, which seldom have the same module on the left as another file of the project's, or one of its own.
func (m goMaker) replaces() string {
	var lines []string
	seen := map[string]bool{}
	for range m.IntN(3) {
		path := m.path()
		old := path
		if m.in(3) {
			old += " " + m.version(path)
		}
		if seen[old] || m.replaced[old] && !m.in(20) || m.own[path] && !m.in(20) { // go refuses two modules that replace it otherwise
			continue
		}
		seen[old], m.replaced[old], m.replaced[path] = true, true, true
		target := pick(m.dice, "example.com/fork", "example.com/fork", path, m.path())
		m.may = append(m.may, target) // for one that nobody requires
		to := pick(m.dice, "./lib", "./lib", m.word("./lib"), target+" "+m.version(target), target+" "+m.version(target))
		lines = append(lines, old+" => "+to)
	}
	return m.lines("replace", lines)
}

// module is a go.mod.
func (m goMaker) module(path string) string {
	m.own[path] = true
	text := pick(m.dice, "module "+m.word(path)+"\n", "// a comment\nmodule "+path+" // more\n") + "\ngo " + pick(m.dice, "1.21", "1.24", "1.16") + "\n\n" + m.requires() + m.replaces()
	if m.in(5) {
		out := pick(m.dice, "example.com/z v1.0.0", "example.com/a v1.0.0")
		m.excluded[out] = true
		text += "exclude " + out + "\n"
	}
	if m.in(5) {
		text += "retract " + pick(m.dice, "v1.0.0", "[v1.0.0, v1.2.0] // bad") + "\n"
	}
	if m.in(8) {
		text += "tool example.com/a/cmd/x\n"
	}
	return text
}

// goModules is a module, or a workspace of some.
func (d dice) goModules() *madeProject {
	m := newGoMaker(d)
	m.files["lib/go.mod"] = "module " + pick(d, "corp.example/lib", "example.com/a") + "\n\ngo 1.21\n"
	if d.in(2) {
		m.files["go.mod"] = d.encodedGo(m.module(pick(d, "corp.example/root", m.path())))
		return m.finish()
	}
	used := pick(d, []string{"./one", "./two"}, []string{"./one"}, []string{`"./one"`, "./two/"}, []string{"one", "./two"})
	names := [][]string{{"example.com/a", "example.com/B", "example.com/c/v2"}, {"example.com/b", "gopkg.in/d.v1", "corp.example/x"}} // go refuses one twice
	for i, dir := range []string{"one", "two"} {
		one := m
		if i == len(used) { // nothing leads to it
			one = newGoMaker(d)
		}
		m.files[dir+"/go.mod"] = d.encodedGo(one.module(pick(d, "corp.example/"+dir, pick(d, names[i]...))))
		m.files[dir+"/lib/go.mod"] = "module corp.example/lib\n\ngo 1.21\n"
	}
	m.files["go.work"] = "go 1.24\n\n" + m.lines("use", used) + m.replaces()
	return m.finish()
}

// encodedGo varies how the lines of a go.mod end, and what is around them.
func (d dice) encodedGo(text string) string {
	switch d.IntN(16) {
	case 0, 1:
		return strings.ReplaceAll(text, "\n", "\r\n")
	case 2:
		return "\ufeff" + text
	case 3:
		at := d.IntN(len(text) + 1)
		return text[:at] + pick(d, "\n", "\r", " ", "//", "/*", "\\\n", "\x00", "\u00a0", "(", ")", ",", "=>", `"`, "`") + text[at:]
	}
	return text
}

// goSum is a go.sum of modules that a proxy has, with some lines in other forms.
func (d dice) goSum() string {
	var text strings.Builder
	for range 1 + d.IntN(8) {
		path := newGoMaker(d).path()
		version := newGoMaker(d).version(path)
		blank, sum := pick(d, " ", " ", "\t", "  "), pick(d, "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "h1:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=", "h1:G7mAYYxgmS0lVkHyy2hEOLQCFB0DlQFTMLWggykrydY=")
		if d.in(25) { // most of these are refused
			blank, sum = pick(d, " ", "\v", "\u00a0"), pick(d, "h2:x", "h1:", sum)
		}
		fmt.Fprintf(&text, "%s%s%s%s%s%s%s", pick(d, "", "", "", " "), path, pick(d, " ", " ", "\t", "  "), version+pick(d, "", "/go.mod"), blank, sum, pick(d, "\n", "\n", "\n", "\r\n", " \n", "\n\n"))
	}
	return text.String()
}
