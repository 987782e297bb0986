package differential

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// madeProject is a project made at random.
type madeProject struct {
	files map[string]string
	// may are names that clients ask for under a condition that this project need not meet, such as that of a catalog which no member uses.
	may []string
	// own are names that the project has itself; firm are those that are asked for without a condition.
	own, firm map[string]bool
	// brought are names that are told as what others bring, which nobody needs to be told of.
	brought map[string]bool
	// aliased and plain are names under which one manifest asks for another package, and those by which one asks for them. Of a name that
	// is both, npm takes the other package, if it has that already, and pnpm does not.
	aliased, plain map[string]bool
	// struck are names that one client is told never to ask for, and others that read the same file do.
	struck []string
}

func newProject() *madeProject {
	return &madeProject{files: map[string]string{}, own: map[string]bool{}, firm: map[string]bool{}, brought: map[string]bool{}, aliased: map[string]bool{}, plain: map[string]bool{}}
}

// pair is a member of a JSON object, which may have a key twice.
type pair struct {
	key   string
	value any
}

type object []pair

// json writes a value, with escapes in some keys.
func (d dice) json(value any, indent string) string {
	switch v := value.(type) {
	case object:
		members := make([]string, len(v))
		for i, p := range v {
			members[i] = indent + "  " + d.key(p.key) + ": " + d.json(p.value, indent+"  ")
		}
		return "{\n" + strings.Join(members, ",\n") + "\n" + indent + "}"
	case raw:
		return string(v)
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return strings.NewReplacer(`\u003e`, ">", `\u003c`, "<", `\u0026`, "&").Replace(string(text))
}

// raw is JSON as it is written.
type raw string

func (d dice) key(key string) string {
	if !d.in(30) || key == "" {
		return `"` + key + `"`
	}
	at := d.IntN(len(key))
	return fmt.Sprintf(`"%s\u%04x%s"`, key[:at], key[at], key[at+1:])
}

// nodeMaker makes projects of npm or of pnpm.
type nodeMaker struct {
	dice
	*madeProject
	pnpm  bool  // real, with no network
	place place // of the manifest
}

// place is where a manifest lies.
type place int

const (
	inRoot   place = iota
	inMember       // perhaps: by the patterns
	inFolder       // that others ask for, perhaps
)

// ask notes that a name is asked for without a condition, in a place.
func (p *madeProject) ask(at place, name string) {
	switch at {
	case inRoot:
		p.firm[name] = true
	case inFolder:
		p.may = append(p.may, name)
	case inMember:
	}
}

func (m nodeMaker) name() string {
	if m.in(300) { // which npm takes for what each object of JavaScript has
		return "constructor"
	}
	return pick(m.dice, "a", "b", "c", "ms", "left-pad", "@s/a", "@s/b", "@t/a", "x.y", "JSONStream", "a_b", "may-a", "may-b", "@s/may-c")
}

func (m nodeMaker) mayName() string {
	name := pick(m.dice, "may-a", "may-b", "@s/may-c", "may-d", "may-e")
	m.may = append(m.may, name)
	return name
}

func (m nodeMaker) version() string {
	return pick(m.dice, "^1.0.0", "1.0.0", "*", "", "latest", "next", ">=1.0.0 <3", "1.x || 2", "~2.3.4", "v1.0.0", "=1.0.0", " ^1.0.0 ", "1.0.0 - 2.0.0", "x", ">1")
}

// spec is what a package is asked for by. firm tells that it is asked for without a condition.
func (m nodeMaker) spec(name string, firm bool) string {
	target := m.name()
	if !firm {
		target = m.mayName()
	}
	switch m.IntN(14) {
	case 0, 1:
		m.may = append(m.may, target) // npm takes another package that has the name already
		m.aliased[name] = true
		return pick(m.dice, "npm:"+target+"@^1.0.0", "npm:"+target+"@1.0.0", "npm:"+target, "npm:"+target+"@latest", "npm:"+target+"@*")
	case 2:
		return pick(m.dice, "file:./lib/a", "file:lib/a", "file:lib/b", "./lib/a", "file:lib/../lib/b", "file:"+strings.Repeat("./", 3)+"lib/a")
	case 3:
		if m.in(25) {
			m.may = append(m.may, name, "x", "1.x") // by "npm:^1.0.0", and by what has another name
			return pick(m.dice, "link:./lib/a", "link:lib/b", "link:nowhere", "workspace:*", "workspace:^", "workspace:lib/a", "portal:lib/a", "catalog:", "catalog:x", "jsr:@s/a@1", "npm:1.0.0", "npm:x", "npm:~1.0.0", "npm:01.0.0", "npm:1.0.0rc", "npm:^1.0.0", "npm:x@1.0.0", "npm:1.x@^1.0.0",
				"patch:a@1#x", "file:nowhere.tgz", "nosuchtag", "runtime:22")
		}
		if !m.pnpm { // which knows neither of these
			return "file:./lib/b"
		}
		return pick(m.dice, "link:./lib/a", "link:lib/b", "link:./packages/one")
	case 4:
		if m.pnpm { // it asks them
			return pick(m.dice, fakePlace+"/other/files/x.tgz", "git+"+fakeRepository)
		}
		return pick(m.dice, "git+ssh://git@code.example/x/y.git", "github:x/y", "x/y", "x/y#semver:^1", "git@code.example:x/y.git", "https://files.example/a.tgz", "http://files.example/a.tgz#x", "gist:0123456789abcdef", "bitbucket:x/y",
			"git://code.example/x.git#v1", "git+https://code.example/x.git#0123456789", "gitlab:x/y", "https://github.com/x/y", "https://github.com/x/y.git#main", "git+file:///x/y", "ssh://git@code.example/x", "HTTPS://files.example/a.tgz", "GIT+https://code.example/x.git", "user@code.example:x", "%40s/x", "@s/x", "x/y/z")
	}
	if m.plain[name] = true; firm {
		m.ask(m.place, name)
	}
	return m.version()
}

// wants is a section of dependencies; firm: of those that are asked for without a condition.
func (m nodeMaker) wants(firm bool) object {
	var all object
	for range m.IntN(4) {
		name := m.name()
		if !firm {
			name = m.mayName()
		}
		if m.pnpm && !m.in(50) && slices.ContainsFunc(all, func(p pair) bool { return p.key == name }) { // which refuses a name twice
			continue
		}
		if m.pnpm && !firm && !m.in(20) { // nor does it take a peer from elsewhere
			m.plain[name] = true
			all = append(all, pair{name, m.version()})
			continue
		}
		all = append(all, pair{name, m.spec(name, firm)})
		if m.in(30) && !m.pnpm { // npm has the last of two
			all = append(all, pair{name, m.spec(name, firm)})
		}
	}
	if m.in(600) {
		all = append(all, pair{m.name(), pick[any](m.dice, nil, 1, true, object{}, []string{"1.0.0"})})
	}
	return all
}

// overrides are npm's: rules, which may lie in each other.
func (m nodeMaker) overrides(depth int) object {
	var all object
	for range m.IntN(3) {
		name := pick(m.dice, m.name(), "inner-a", "inner-b", "inner-a@1", m.name()+"@^1.0.0", m.mayName())
		if strings.Contains(name[1:], "@") || depth > 0 { // for some versions or parents
			m.aliased[strings.TrimSuffix(name, "@^1.0.0")] = true
		}
		if m.in(3) && depth < 3 {
			inner := m.overrides(depth + 1)
			if m.in(2) {
				inner = append(inner, pair{".", m.replacement(name)})
			}
			all = append(all, pair{name, inner})
			continue
		}
		all = append(all, pair{name, m.replacement(name)})
	}
	return all
}

func (m nodeMaker) replacement(name string) string {
	return pick(m.dice, m.version(), pick(m.dice, "$"+m.name(), m.version()), "npm:"+m.mayName()+"@^1.0.0", "file:./lib/a", m.spec(name, false), m.spec(name, false))
}

// manifest is a package.json.
func (m nodeMaker) manifest(name string) string {
	all := object{{"version", "1.0.0"}}
	if name != "" {
		all = append(all, pair{"name", name})
		m.own[name] = true
	}
	for _, section := range []string{"dependencies", "devDependencies", "optionalDependencies", "peerDependencies"} {
		if m.in(2) {
			all = append(all, pair{section, m.wants(section != "peerDependencies")})
		}
		if m.in(600) {
			all = append(all, pair{section, pick[any](m.dice, m.wants(true), nil, []string{m.name()}, "", m.name(), false)})
		}
	}
	if m.in(5) {
		peer := m.name()
		all = append(all, pair{"peerDependenciesMeta", object{{peer, object{{"optional", m.in(2)}}}}})
	}
	if m.in(8) {
		bundled := pick[any](m.dice, []string{m.name()}, []string{m.mayName()}, true, false)
		if name == "" && m.place == inMember && !m.pnpm { // which npm takes for no member
			m.strikeBundled(all, bundled)
		}
		all = append(all, pair{pick(m.dice, "bundleDependencies", "bundledDependencies"), bundled})
	}
	if m.in(8) {
		all = append(all, pair{"Dependencies", object{{"capital", "1.0.0"}}}, pair{"x", raw(strings.Repeat("[", 100) + strings.Repeat("]", 100))})
	}
	if m.place == inRoot {
		all = append(all, m.rootOnly()...)
	}
	m.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return m.json(all, "")
}

// strikeBundled notes what npm takes for part of a package: a list of names, or true for all of its dependencies.
func (m nodeMaker) strikeBundled(manifest object, bundled any) {
	if names, is := bundled.([]string); is {
		m.struck = append(m.struck, names...)
		return
	}
	for _, section := range manifest {
		if wants, _ := section.value.(object); section.key == "dependencies" && bundled == true {
			for _, p := range wants {
				m.struck = append(m.struck, p.key)
			}
		}
	}
}

// rootOnly are the members that a client reads in the first package.json alone.
func (m nodeMaker) rootOnly() (all object) {
	if m.in(3) && !m.pnpm {
		all = append(all, pair{"overrides", m.overrides(0)})
	}
	if m.in(6) {
		all = append(all, pair{"resolutions", m.replacements()})
	}
	if m.in(8) {
		all = append(all, pair{"pnpm", object{{"overrides", m.replacements()}}})
	}
	if !m.pnpm && m.in(2) {
		patterns := m.patterns()
		all = append(all, pair{"workspaces", pick[any](m.dice, patterns, object{{"packages", patterns}})})
	}
	return all
}

func (m nodeMaker) replacements() (all object) {
	for range 1 + m.IntN(2) {
		name := m.name()
		all = append(all, pair{pick(m.dice, name, "inner-a", "inner-b", name+"@1", m.name()+">"+name, "a@1>inner-a"), m.spec(name, false)})
	}
	return all
}

func (m nodeMaker) patterns() []string {
	all := []string{"packages/*"}
	for range m.IntN(3) {
		all = append(all, pick(m.dice, "packages/one", "./packages/two", "packages/**", "!packages/two", "pack*/o?e", "packages/{one,two}", "tools/x", "packages/[ot]*", "**", "!**/one", "packages/.hidden", "packages/.*", "nowhere/*", "packages/two/", "packages/deep/*/*"))
	}
	return all
}

// nodeProject is a project of npm, or of pnpm with a workspace.
func (d dice) nodeProject(pnpm bool) *madeProject {
	m := nodeMaker{d, newProject(), pnpm, inRoot}
	m.files["package.json"] = d.encoded(m.manifest(pick(d, "project", "", m.name())))
	for _, dir := range []string{"lib/a", "lib/b", "packages/one", "packages/two", "packages/.hidden", "tools/x", "packages/deep/er/est"} {
		if d.in(2) || strings.HasPrefix(dir, "lib/") {
			if m.place = inMember; strings.HasPrefix(dir, "lib/") {
				m.place = inFolder
			}
			m.files[dir+"/package.json"] = m.manifest(pick(d, "own-"+dir[len(dir)-1:], m.name(), ""))
		}
	}
	if pnpm {
		m.files["pnpm-workspace.yaml"] = d.encoded(m.workspace())
	}
	return m.madeProject
}

// encoded varies how a file's text is written.
func (d dice) encoded(text string) string {
	if d.in(8) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	switch d.IntN(24) {
	case 0, 1:
		text = "\ufeff" + text
	case 2:
		wide := "\xff\xfe"
		for _, c := range []byte(text) {
			wide += string([]byte{c, 0})
		}
		text = wide
	case 3:
		text = pick(d, "// a comment\n", "/* a comment */", "# a comment\n", "\n\n", "\x00", "\ufeff\ufeff") + text
	case 4:
		text += pick(d, "\n", "\x00", "\n{}\n", "\n---\na: b\n", " ", "\n# a comment", "}")
	}
	return text
}
