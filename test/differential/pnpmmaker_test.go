package differential

import (
	"fmt"
	"strings"
)

// yamlWord is a text as one of YAML's scalars.
func (d dice) yamlWord(text string) string {
	quoted := fmt.Sprintf("%q", text)
	plain := text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-/") == "" && text[0] != '.' && text[0] != '-'
	switch {
	case plain && d.in(2):
		return text
	case d.in(20) && text != "":
		return fmt.Sprintf(`"\x%02x%s`, text[0], quoted[2:])
	}
	return pick(d, quoted, "'"+strings.ReplaceAll(text, "'", "''")+"'")
}

// table is a mapping of names to what they are asked for by.
func (m nodeMaker) table(indent string, names int, entry func() (string, string)) string {
	var lines []string
	seen := map[string]bool{}
	for range names {
		name, spec := entry()
		if seen[name] && !m.in(100) { // a key twice is an error
			continue
		}
		seen[name] = true
		lines = append(lines, m.yamlWord(name)+": "+m.yamlWord(spec))
	}
	if len(lines) == 0 {
		return pick(m.dice, " {}", " {}", "", " ~") + "\n"
	}
	if m.in(4) {
		return " {" + strings.Join(lines, ", ") + "}\n"
	}
	end := pick(m.dice, "", "", "  # a comment")
	return "\n" + indent + strings.Join(lines, end+"\n"+indent) + end + "\n"
}

// workspace is a pnpm-workspace.yaml.
func (m nodeMaker) workspace() string {
	var text strings.Builder
	may := func() (string, string) { name := m.mayName(); return name, m.spec(name, false) }
	if !m.in(6) {
		text.WriteString("packages:\n")
		for _, p := range m.patterns() {
			fmt.Fprintf(&text, "  - %s\n", m.yamlWord(p))
		}
	}
	usual := m.in(2)
	if usual {
		text.WriteString("catalog:" + m.table("  ", 1+m.IntN(4), func() (string, string) {
			name := pick(m.dice, m.mayName(), m.mayName(), "cat-a")
			m.may = append(m.may, "cat-a")
			return name, m.spec(name, false)
		}))
	}
	if m.in(3) {
		text.WriteString("catalogs:\n  x:" + m.table("    ", 1+m.IntN(3), may))
		if !usual || m.in(20) { // pnpm refuses both
			text.WriteString("  'default':" + m.table("    ", 1+m.IntN(3), may))
		}
	}
	if m.in(3) {
		text.WriteString("overrides:" + m.table("  ", 1+m.IntN(3), func() (string, string) {
			name := m.name()
			key := pick(m.dice, name, "inner-a", "inner-b", "inner-a@1", name+"@1", "a>inner-b", "a@1>"+name)
			if key != name {
				m.aliased[name] = true // for some versions or parents
			}
			return key, pick(m.dice, m.spec(name, false), "npm:"+m.mayName()+"@1", "-")
		}))
	}
	if m.in(5) {
		text.WriteString("packageExtensions:\n  " + m.yamlWord(pick(m.dice, "a", "b", "c@1")) + ":\n    " + pick(m.dice, "dependencies", "optionalDependencies", "peerDependencies") + ":" + m.table("      ", 2, may))
	}
	if m.in(4) {
		text.WriteString(pick(m.dice, "linkWorkspacePackages: true\n", "linkWorkspacePackages: deep\n", "autoInstallPeers: false\n", "preferWorkspacePackages: true\n", "injectWorkspacePackages: true\n", "sharedWorkspaceLockfile: true\n", "x: &x {a: b}\ny: *x\n", "on: yes\n", "excludeLinksFromLockfile: true\n", "dedupePeerDependents: false\n"))
	}
	return text.String()
}
