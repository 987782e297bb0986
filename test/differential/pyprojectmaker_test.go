package differential

import (
	"fmt"
	"strings"
)

// uvMaker makes projects of uv. Each of its places is one that uv can have: a folder, or a wheel.
type uvMaker struct {
	dice
	*madeProject
	sourced map[string]bool // names that have a source
	place   place
}

func (m uvMaker) name() string {
	return pick(m.dice, "a", "b", "six", "zope.interface", "Zope_Interface", "typing-extensions", "typing_extensions", "A", "ruamel.yaml", "x--y", "lib-a", "Lib_A", "lib.b", "may-a", "six")
}

func (m uvMaker) mayName() string {
	name := pick(m.dice, "may-a", "may_b", "May.C", "may-d")
	m.may = append(m.may, name)
	return name
}

// requirement is a line. firm tells that uv asks for it, if it comes from an index.
func (m uvMaker) requirement(firm bool) string {
	name := m.name()
	if !firm {
		name = m.mayName()
	}
	line := name + pick(m.dice, "", "", "[x]", " [x, y]", "[]")
	if m.in(16) && !m.sourced[folded(name)] {
		return name + pick(m.dice, " @ ", "@ ") + fakePlace + "/other/files/" + strings.ReplaceAll(folded(name), "-", "_") + "-1.0-py3-none-any.whl"
	}
	line += pick(m.dice, "", "", ">=1", " >= 1.0, <3", "==1.2.3", "~=1.0", "(>=1)", " (>=1,<3)", "!=2", "==1.*", "===1.0", ">=1,")
	switch {
	case m.in(4):
		line += pick(m.dice, " ; python_version > '3'", "; sys_platform == 'linux'", " ;python_version<\"4\" and os_name!='x'")
		fallthrough
	default:
		if firm {
			m.ask(m.place, name)
		}
	case m.in(12) && firm: // which no version of Python that the project takes meets
		m.may = append(m.may, name)
		line += " ; python_version < '3'"
	}
	return line
}

// folded is a name as it is compared.
func folded(name string) string {
	name, _ = canonicalName("python", name)
	return name
}

func (m uvMaker) lines(firm bool) string {
	lines := make([]string, m.IntN(4))
	for i := range lines {
		lines[i] = m.tomlText(m.requirement(firm))
	}
	return "[" + strings.Join(lines, pick(m.dice, ", ", ",\n    ", ", # a comment\n    ")) + pick(m.dice, "", "\n") + "]\n"
}

// tomlText is a text in one of TOML's forms.
func (d dice) tomlText(text string) string {
	if !strings.ContainsAny(text, "'") && d.in(3) {
		return pick(d, "'"+text+"'", "'''"+text+"'''")
	}
	quoted := strings.ReplaceAll(text, `"`, `\"`)
	if d.in(20) && text != "" {
		return fmt.Sprintf(`"\u%04x%s"`, quoted[0], quoted[1:])
	}
	return pick(d, `"`+quoted+`"`, `"`+quoted+`"`, `"""`+quoted+`"""`)
}

// sources are tables of tool.uv.sources.
func (m uvMaker) sources() string {
	var text strings.Builder
	for range m.IntN(4) {
		name := pick(m.dice, "lib-a", "Lib_A", "lib.b", "a", "six", "one", "two")
		if m.sourced[folded(name)] {
			continue
		}
		m.sourced[folded(name)] = true
		source := map[string][]string{
			"lib-a": {`{ path = "lib/a" }`, `{ path = "lib/a", editable = true }`, `[{ path = "lib/a", marker = "sys_platform == 'linux'" }, { index = "other", marker = "sys_platform != 'linux'" }]`},
			"lib-b": {`{ path = "./lib/b", package = false }`, `{ path = "lib/b" }`},
			"a":     {`{ index = "other" }`, `{ index = "other", marker = "sys_platform == 'linux'" }`, `{ git = "` + fakeRepository + `" }`},
			"six":   {`{ index = "other" }`, `{ url = "` + fakePlace + `/other/files/six-1.0-py3-none-any.whl" }`},
			"one":   {`{ workspace = true }`}, "two": {`{ workspace = true }`},
		}[folded(name)]
		fmt.Fprintf(&text, "%s = %s\n", pick(m.dice, `"`+name+`"`, `'`+name+`'`), pick(m.dice, source...))
	}
	if text.Len() == 0 {
		return ""
	}
	return "[tool.uv.sources]\n" + text.String() + "\n"
}

// pyproject is a file of a project with a name of its own.
func (m uvMaker) pyproject(name string) string {
	m.own[name] = true
	clear(m.sourced)
	sources := m.sources()
	text := "[project]\nname = " + m.tomlText(name) + "\nversion = \"0.1.0\"\nrequires-python = \">=3.9\"\ndependencies = " + m.lines(true)
	if m.in(3) {
		text += "optional-dependencies = { x = " + strings.ReplaceAll(strings.ReplaceAll(m.lines(true), " # a comment", ""), "\n", " ") + "}\n"
	}
	text += "\n" + sources
	if m.in(3) {
		text += "[dependency-groups]\ndev = " + m.lines(true) + "more = [{ include-group = \"dev\" }, \"six>=1\"]\n\n"
		m.ask(m.place, "six")
	}
	if m.in(4) {
		text += "[build-system]\nrequires = [" + m.tomlText(m.mayName()) + "]\nbuild-backend = \"x\"\n\n"
	}
	if m.in(8) {
		text += "[Project]\ndependencies = [\"capital\"]\n\n[tool.x]\ny = " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\n\n"
	}
	if m.place == inRoot {
		text += m.uvTables()
	}
	m.may = append(m.may, "setuptools", "wheel") // by which what says nothing is built
	return text
}

// uvTables are what uv reads in the first project alone.
func (m uvMaker) uvTables() string {
	text := "[tool.uv]\n"
	for _, key := range []string{"constraint-dependencies", "build-constraint-dependencies", "override-dependencies", "dev-dependencies"} {
		switch {
		case !m.in(4):
		case key == "dev-dependencies":
			text += key + " = " + m.lines(true)
		default:
			text += key + " = " + m.lines(false)
		}
	}
	if m.in(6) {
		if name := m.mayName(); !m.own[name] { // uv asks for nothing that a project wants whose own name it is told to exclude
			m.struck = append(m.struck, name)
			text += "exclude-dependencies = [" + m.tomlText(name) + "]\n"
		}
	}
	text += pick(m.dice, "", "package = false\n", "environments = [\"sys_platform == 'linux'\"]\n", "managed = true\n")
	text += "\n[tool.uv.workspace]\nmembers = " + pick(m.dice, `["members/*"]`, `["members/one", "members/tw?"]`, `["members/**"]`, `["members/[ot]*"]`, `["members/*", "nowhere/*"]`, "[]") + "\n"
	if m.in(4) {
		text += "exclude = " + pick(m.dice, `["members/two"]`, `["members/*"]`, `["members/t*"]`) + "\n"
	}
	return text + "\n[[tool.uv.index]]\nname = \"other\"\nurl = \"" + fakePlace + "/other/simple\"\nexplicit = true\n"
}

// uvManifests is a project of uv, with folders of its own and members of a workspace.
func (d dice) uvManifests() *madeProject {
	m := uvMaker{d, newProject(), map[string]bool{}, inRoot}
	m.files["pyproject.toml"] = d.encoded(m.pyproject(pick(d, "project", "Project_X", m.name())))
	m.place = inFolder
	m.files["lib/a/pyproject.toml"] = m.pyproject("lib-a")
	m.files["lib/b/pyproject.toml"] = m.pyproject("lib-b")
	m.place = inMember
	for _, dir := range []string{"members/one", "members/Two", "members/.three"} {
		if d.in(2) {
			m.files[strings.ToLower(dir)+"/pyproject.toml"] = m.pyproject(strings.TrimLeft(dir[len("members/"):], "."))
		}
	}
	return m.madeProject
}

// requirementsManifest is a project with a requirements file, and what that may include.
func (d dice) requirementsManifest() *madeProject {
	p := newProject()
	p.may = []string{"setuptools", "wheel"} // by which a directory is built
	p.files["requirements.txt"] = d.encoded(string(d.requirementsLock()))
	p.files["other.txt"] = "from-other\n"
	p.files["lib/pyproject.toml"] = "[project]\nname = \"" + d.pythonName() + "\"\nversion = \"1\"\n"
	return p
}
