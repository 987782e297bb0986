package differential

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Digests that could be a file's, in the algorithms that clients take and some that they don't.
const (
	aSHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	bSHA256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	aSHA512 = "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
	aMD5    = "d41d8cd98f00b204e9800998ecf8427e"
	aSHA1   = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
)

func (d dice) pythonName() string {
	return pick(d, "a", "b", "six", "zope.interface", "Zope_Interface", "typing-extensions", "typing_extensions", "a", "A", "ruamel.yaml", "x--y")
}

func (d dice) pythonVersion() string {
	return pick(d, "1.0", "1.0.0", "2.3.4", "1.0.post1", "2.0rc1", "1!2.0", "1.0+local", "v1.0", "01.0", "1.0.dev3")
}

// requirementsLock is a requirements file with hashes, as tools write it and as people change it.
func (d dice) requirementsLock() []byte {
	var lines []string
	for range 1 + d.IntN(6) {
		lines = append(lines, d.requirementLine())
	}
	if d.in(3) {
		lines = append([]string{pick(d, "--require-hashes", "--no-binary :all:", "--only-binary=:all:", "--pre", "--prefer-binary", "# a comment", "", "   ", "-e .", "-e ./lib", "--only-binary :none: --pre", "-e .", "# about it", "--pre", "-r other.txt", "--index-url https://index.example/simple")}, lines...)
	}
	text := strings.Join(lines, pick(d, "\n", "\n", "\n", "\n\n", "\r\n", "\n# between\n")) + pick(d, "\n", "\n", "\n", "\n", "", "", "\\\n", " \\")
	if d.in(12) {
		text = "\ufeff" + text
	}
	if d.in(15) { // something odd, anywhere
		at := d.IntN(len(text) + 1)
		text = text[:at] + pick(d, "\t", " ", "\\\n", "#", " #", "\n", "\r", "\f", "\v", "\u2028", "\u0085", "'", `"`, ";", "==", "\\", "$", "${HOME}", "@", ",", "*", "--hash=sha256:"+aSHA256, " -", "\u00a0", "\x00") + text[at:]
	}
	return []byte(text)
}

func (d dice) requirementLine() string {
	name, version := d.pythonName(), d.pythonVersion()
	line := name + pick(d, "", "", "", "[x]", " [x, y]", "[]") + pick(d, "==", "==", "==", " == ", "=== ", "==", ">=", "~=", "!=") + version
	switch d.IntN(14) {
	case 0:
		line = name + " @ " + pick(d, "https://files.example/", "git+https://code.example/", "file:///lib/") + name + "-1.0.tar.gz"
	case 1:
		line = pick(d, "./lib", ".", "file:lib", "git+https://code.example/x.git#egg="+name, "https://files.example/"+name+"-1.0.tar.gz", "./a-1.0.tar.gz", "a-1.0-py3-none-any.whl", name, name+">=1,<2", name+"==1.*", name+"==1.0,==1.0", name+"(==1.0)", name+" (>=1)", name+"==1.0,!=2")
	}
	if d.in(3) {
		line += pick(d, " ; python_version > '3'", "; sys_platform == 'linux'", ";extra=='x'", " ;python_version<\"4\" and os_name!='x'")
	}
	between := pick(d, " \\\n    ", " \\\n    ", " ", " \\\r\n  ", " \\\n")
	if d.in(30) { // pip parts neither
		between = pick(d, "\t", "\\\n")
	}
	for range pick(d, 0, 1, 1, 1, 2, 3) {
		hash := pick(d, "sha256:"+aSHA256, "sha256:"+bSHA256, "sha384:"+aSHA512[:96], "sha512:"+aSHA512, "sha256:"+strings.ToUpper(aSHA256))
		if d.in(40) { // pip refuses the file for these
			hash = pick(d, "md5:"+aMD5, "sha1:"+aSHA1, "sha256:0123", "blake2b:00")
		}
		line += between + pick(d, "--hash=", "--hash=", "--hash=", "--hash ") + hash
	}
	return line + pick(d, "", "", "", "", "", "  # via b", "  # via b", " #", "    ")
}

// pythonFile is a table of a file of a release.
func (d dice) pythonFile(name, version, hashes string) string {
	file := strings.ReplaceAll(name, "-", "_") + "-" + version
	file += pick(d, ".tar.gz", "-py3-none-any.whl", "-cp311-cp311-manylinux_2_17_x86_64.whl")
	return fmt.Sprintf(`{ url = "https://files.example/%s", %s }`, file, hashes)
}

// pylock is a pylock.toml.
func (d dice) pylock() []byte {
	var text strings.Builder
	text.WriteString("lock-version = \"1.0\"\ncreated-by = \"test\"\n" + pick(d, "", "requires-python = \">=3.9\"\n", "extras = [\"x\"]\ndefault-groups = [\"g\"]\ndependency-groups = [\"g\"]\n"))
	for range 1 + d.IntN(6) {
		name := strings.ToLower(strings.NewReplacer("_", "-", ".", "-", "--", "-").Replace(d.pythonName()))
		version := pick(d, "1.0", "1.0.0", "2.3.4", "1.0.post1", "2.0rc1")
		fmt.Fprintf(&text, "\n[[packages]]\nname = %q\n", name)
		hash := pick(d, "hashes = { sha256 = \""+aSHA256+"\" }", "hashes = { sha256 = \""+bSHA256+"\" }", "hashes = { md5 = \""+aMD5+"\", sha256 = \""+aSHA256+"\" }", "hashes = { md5 = \""+aMD5+"\" }", "hashes = { sha512 = \""+aSHA512+"\", sha256 = \""+aSHA256+"\" }")
		switch d.IntN(9) {
		case 0:
			fmt.Fprintf(&text, "directory = { path = %q, editable = true }\n", pick(d, ".", "../lib", "lib"))
			continue
		case 1:
			fmt.Fprintf(&text, "vcs = { type = \"git\", url = \"https://code.example/x.git\", commit-id = \"0123\" }\n")
			continue
		case 2:
			fmt.Fprintf(&text, "version = %q\narchive = { url = \"https://files.example/x.tar.gz\", hashes = { sha256 = %q } }\n", version, aSHA256)
			continue
		}
		fmt.Fprintf(&text, "version = %q\n%s", version, pick(d, "", "marker = \"sys_platform == 'linux'\"\n", "requires-python = \">=3.8\"\n", "dependencies = [{ name = \"b\" }]\n"))
		if d.in(2) {
			sdist := strings.Replace(d.pythonFile(name, version, hash), "-py3-none-any.whl", ".tar.gz", 1)
			fmt.Fprintf(&text, "sdist = %s\n", strings.Replace(sdist, "-cp311-cp311-manylinux_2_17_x86_64.whl", ".tar.gz", 1))
		}
		wheels := make([]string, d.IntN(3))
		for i := range wheels {
			wheels[i] = strings.Replace(d.pythonFile(name, version, hash), ".tar.gz", "-py2-none-any.whl", 1)
		}
		if len(wheels) > 0 {
			fmt.Fprintf(&text, "wheels = [%s]\n", strings.Join(wheels, ", "))
		}
	}
	return d.tomlEnds(text.String())
}

// tomlEnds varies how a file of TOML begins and how its lines end.
func (d dice) tomlEnds(text string) []byte {
	if d.in(10) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if d.in(4) { // something odd, anywhere
		at := d.IntN(len(text) + 1)
		text = text[:at] + pick(d, `"`, `""`, "'", `\`, `\u0041`, "#", "\n", "\r", "\t", " ", "\u00a0", "\ufeff", "\x7f", "\x00", ",", ".", "=", "}", "{ ", "]", "[", "[[packages]]\n", "name = \"b\"\n", "version = \"9\"\n", "é", "1") + text[at:]
	}
	return []byte(text)
}

// uvProject is a pyproject.toml and the uv.lock that its project has.
func (d dice) uvProject() (project, lock []byte) {
	tables, wanted := map[string]string{}, []string{}
	for range 1 + d.IntN(6) {
		name := strings.ToLower(strings.NewReplacer("_", "-", ".", "-", "--", "-").Replace(d.pythonName()))
		version := pick(d, "1.0", "1.0.0", "2.3.4", "1.0.post1", "2.0rc1")
		hash := pick(d, `hash = "sha256:`+aSHA256+`"`, `hash = "sha256:`+bSHA256+`"`, `hash = "sha256:`+aSHA256+`", size = 12`, `hash = "md5:`+aMD5+`"`, `size = 1`)
		source, files := `registry = "https://index.example/simple"`, ""
		switch d.IntN(9) {
		case 0:
			source = pick(d, `directory = "../lib"`, `editable = "lib"`, `virtual = "member"`)
		case 1:
			source = `git = "https://code.example/x.git?rev=1#0123456789012345678901234567890123456789"`
		case 2:
			source, files = `url = "https://files.example/`+name+`-`+version+`.tar.gz"`, `sdist = { hash = "sha256:`+aSHA256+`" }`
		case 3:
			source = `path = "lib/` + strings.ReplaceAll(name, "-", "_") + `-` + version + `-py3-none-any.whl"`
			files = `wheels = [{ filename = "` + strings.ReplaceAll(name, "-", "_") + `-` + version + `-py3-none-any.whl", hash = "sha256:` + aSHA256 + `" }]`
		default:
			files = "wheels = [" + strings.Replace(d.pythonFile(name, version, hash), ".tar.gz", "-py2-none-any.whl", 1) + "]"
			if d.in(2) {
				files += "\nsdist = { url = \"https://files.example/" + strings.ReplaceAll(name, "-", "_") + "-" + version + ".tar.gz\", " + hash + " }"
			}
		}
		key := name
		if tables[key] == "" {
			wanted = append(wanted, name)
			tables[key] = fmt.Sprintf("[[package]]\nname = %q\nversion = %q\nsource = { %s }\n%s\n", name, version, source, files)
		}
	}
	var text strings.Builder
	text.WriteString("version = 1\n" + pick(d, "revision = 3\n", "", "revision = 2\n") + "requires-python = \">=3.9\"\n\n")
	for _, key := range slices.Sorted(maps.Keys(tables)) {
		text.WriteString(tables[key] + "\n")
	}
	odd := string(d.tomlEnds(text.String())) // and not in the project's own, which says what uv looks at
	text.Reset()
	text.WriteString(odd + "\n[[package]]\nname = \"project\"\nversion = \"0.1.0\"\nsource = { " + pick(d, "virtual", "editable") + " = \".\" }\ndependencies = [\n")
	for _, name := range wanted {
		fmt.Fprintf(&text, "    { name = %q%s },\n", name, pick(d, "", "", `, marker = "sys_platform == 'linux'"`))
	}
	text.WriteString("]\n")
	project = []byte("[project]\nname = \"project\"\nversion = \"0.1.0\"\nrequires-python = \">=3.9\"\ndependencies = [\"" + strings.Join(wanted, `", "`) + "\"]\n")
	return project, []byte(text.String())
}
