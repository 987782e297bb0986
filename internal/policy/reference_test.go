package policy_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// The reference evaluator: it knows a few versions by their rank and a few
// ranges by the ranks that they hold, and nothing of the real code.

type model struct {
	allowed, blocked                    []modelEntry
	byDefault, sdist, minAge, ageSource string
	rules                               []modelRule
	action                              string
	hasRules, blockLists                bool
}

type modelEntry struct {
	name, limit, version string
	deps, pre            bool
}

type modelRule struct {
	field, operator, value, action string
	priority                       int
}

// someVersions are in their order; those that end in a letter and a digit are
// pre-releases.
func someVersions() []string {
	return []string{"0.9", "1.0rc1", "1.0", "1.5.2", "2.0a1", "2.0", "2.31.0", "3.0.dev1", "3.0rc1", "3.0", "1!0.1"}
}

// holds are the ranks, from and up to but without, of a range.
func holds(text string) (from, to int) {
	switch text {
	case "<2", "1.x":
		return 0, 4
	case ">=1.0,<3":
		return 2, 7
	case "==2.*":
		return 4, 7
	case "2.x":
		return 0, 7
	case "2.0":
		return 0, 6
	case "==1.0":
		return 2, 3
	}
	return 0, 11
}

func in(text string, rank int) bool {
	from, to := holds(text)
	return from <= rank && rank < to
}

func isPre(rank int) bool { return slices.Contains([]int{1, 4, 7, 8}, rank) }

// decide is the order of docs/policy.md, said once more.
func (m *model) decide(name string, rank int, kind policy.ArtifactKind, age time.Duration, known bool, edges []policy.Edge) (policy.Effect, policy.ResolvedBy) {
	for _, b := range m.blocked {
		if b.name == name && in(b.version, rank) {
			return policy.Deny, policy.ByBlocklist
		}
	}
	effect, by := policy.Deny, policy.ByDefault
	if e, listed := m.entry(name, rank); listed {
		if by = policy.ByAllowlist; e {
			effect = policy.Allow
		}
	} else if m.edge(name, rank, edges) {
		effect, by = policy.Allow, policy.ByDependency
	} else if m.byDefault != "" && !isPre(rank) {
		effect = policy.Effect(m.byDefault)
	}
	if effect == policy.Deny {
		return effect, by
	}
	stricter := func(e policy.Effect) {
		if e == policy.Deny || (e == policy.Hold && effect == policy.Allow) {
			effect, by = e, policy.ByAllowlist
		}
	}
	if kind == policy.KindOther || (kind == policy.KindSdist && (m.sdist == "" || m.sdist == "deny")) {
		return policy.Deny, policy.ByAllowlist
	}
	if kind == policy.KindSdist && m.sdist == "hold" {
		stricter(policy.Hold)
	}
	if m.minAge != "" && m.ageSource != "ignore" {
		if !known || age < 0 || m.ageSource == "first-seen" {
			stricter(policy.Hold)
		} else if age < 7*24*time.Hour {
			stricter(policy.Deny)
		}
	}
	return effect, by
}

func (m *model) entry(name string, rank int) (admits, listed bool) {
	for _, e := range m.allowed {
		if e.name == name {
			listed = true
			admits = admits || (in(e.limit, rank) && in(e.version, rank) && (e.pre || !isPre(rank)))
		}
	}
	return admits, listed
}

func (m *model) edge(name string, rank int, edges []policy.Edge) bool {
	for _, e := range edges {
		for _, a := range m.allowed {
			pre := slices.ContainsFunc(m.allowed, func(o modelEntry) bool { return o.name == a.name && o.deps && o.pre })
			if e.Name == name && e.Parent.Name != name && a.deps && e.Through == "allowed_packages.python."+a.name &&
				in(e.Specifier, rank) && (pre || !isPre(rank)) {
				return true
			}
		}
	}
	return false
}

// command is the toolkit's evaluation.
func (m *model) command(fields map[string]string) policy.Effect {
	if !m.hasRules && m.action == "" {
		return policy.Allow
	}
	for priority := 2; priority >= -2; priority-- {
		for _, r := range m.rules {
			actual, present := fields[r.field]
			if r.priority == priority && present && r.holds(actual) {
				return permits(r.action)
			}
		}
	}
	return permits(m.action)
}

func permits(action string) policy.Effect {
	if action == "allow" || action == "audit" {
		return policy.Allow
	}
	return policy.Deny
}

func (r modelRule) holds(actual string) bool {
	list := strings.Split(r.value, " ")
	return map[string]bool{
		"eq": actual == r.value, "ne": actual != r.value, "gt": actual > r.value, "lt": actual < r.value,
		"gte": actual >= r.value, "lte": actual <= r.value, "contains": strings.Contains(actual, r.value),
		"in": slices.Contains(list, actual), "not_in": !slices.Contains(list, actual),
	}[r.operator] || (r.operator == "matches" && regexp.MustCompile(r.value).MatchString(actual))
}

// What follows draws a model and writes it as a document.

func drawName(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "null"}).Draw(rt, "name")
}

func drawEntry(rt *rapid.T) modelEntry {
	return modelEntry{
		name:    drawName(rt),
		limit:   rapid.SampledFrom([]string{"", "", "1.x", "2.x", "2.0"}).Draw(rt, "max_version"),
		version: rapid.SampledFrom([]string{"", "", "<2", ">=1.0,<3", "==2.*"}).Draw(rt, "version"),
		deps:    rapid.Bool().Draw(rt, "with_dependencies"),
		pre:     rapid.Bool().Draw(rt, "prereleases"),
	}
}

func drawDocument(rt *rapid.T) *model {
	word := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(rt, label) }
	m := &model{
		byDefault:  word("default", "", "", "deny", "hold", "allow"),
		sdist:      word("sdist", "", "deny", "hold", "allow"),
		minAge:     word("min_release_age", "", "", "7d"),
		ageSource:  word("age_source", "", "trusted", "first-seen", "ignore"),
		action:     word("action", "", "allow", "audit", "deny", "block"),
		hasRules:   rapid.Bool().Draw(rt, "rules"),
		blockLists: rapid.Bool().Draw(rt, "block style"),
	}
	for range rapid.IntRange(0, 4).Draw(rt, "allowed") {
		e := drawEntry(rt)
		if !slices.ContainsFunc(m.allowed, func(o modelEntry) bool { return o.name == e.name && o.limit == e.limit && o.version == e.version }) {
			m.allowed = append(m.allowed, e)
		}
	}
	for range rapid.IntRange(0, 1).Draw(rt, "blocked") {
		e := drawEntry(rt)
		m.blocked = append(m.blocked, modelEntry{name: e.name, version: e.version})
	}
	if m.hasRules {
		for range rapid.IntRange(0, 4).Draw(rt, "number of rules") {
			m.rules = append(m.rules, drawRule(rt))
		}
	}
	return m
}

func drawRule(rt *rapid.T) modelRule {
	word := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(rt, label) }
	return modelRule{
		field:    word("field", "command", "code", "tool"),
		operator: word("operator", "eq", "ne", "gt", "lt", "gte", "lte", "in", "not_in", "matches", "contains"),
		value:    word("value", "curl", "pip", "curl pip", "c", "p.p|x"),
		action:   word("action", "allow", "audit", "deny", "block"),
		priority: rapid.IntRange(-2, 2).Draw(rt, "priority"),
	}
}

func drawFields(rt *rapid.T) (map[string]string, policy.CommandInput) {
	fields := map[string]string{}
	field := func(name string) *string {
		if !rapid.Bool().Draw(rt, "has "+name) {
			return nil
		}
		s := rapid.SampledFrom([]string{"", "curl", "pip", "curl pip", "pop", "zz"}).Draw(rt, name)
		fields[name] = s
		return &s
	}
	return fields, policy.CommandInput{Command: field("command"), Code: field("code"), Tool: field("tool")}
}

func drawEdges(rt *rapid.T) []policy.Edge {
	var edges []policy.Edge
	for range rapid.IntRange(0, 3).Draw(rt, "edges") {
		through := ""
		if rapid.Bool().Draw(rt, "through") {
			through = "allowed_packages.python." + drawName(rt)
		}
		edges = append(edges, policy.Edge{
			Parent: pkgref.Ref{Ecosystem: pkgref.Python, Name: drawName(rt), Version: "1.0"}, Through: through, Name: drawName(rt),
			Specifier: rapid.SampledFrom([]string{"", "<2", "==1.0", ">=1.0,<3"}).Draw(rt, "specifier"),
		})
	}
	return edges
}

func (m *model) yaml() string {
	var b strings.Builder
	b.WriteString("# drawn\nname: drawn\n")
	b.WriteString("packages:\n  install_scripts: deny\n")
	for _, f := range [][2]string{{"default", m.byDefault}, {"sdist", m.sdist}, {"min_release_age", m.minAge}, {"age_source", m.ageSource}} {
		if f[1] != "" {
			fmt.Fprintf(&b, "  %s: %s\n", f[0], f[1])
		}
	}
	m.list(&b, "allowed_packages", m.allowed)
	m.list(&b, "blocked_packages", m.blocked)
	if m.action != "" {
		fmt.Fprintf(&b, "defaults: { action: %s }\n", m.action)
	}
	if m.hasRules {
		b.WriteString("rules: [")
		for i, r := range m.rules {
			value := fmt.Sprintf("%q", r.value)
			if strings.HasSuffix(r.operator, "in") && r.operator != "contains" {
				value = fmt.Sprintf("[%q]", strings.Split(r.value, " "))
				value = strings.ReplaceAll(strings.Trim(value, "[]"), `" "`, `", "`)
				value = "[" + value + "]"
			}
			fmt.Fprintf(&b, "\n  { name: r%d, condition: { field: %s, operator: %s, value: %s }, action: %s, priority: %d },",
				i, r.field, r.operator, value, r.action, r.priority)
		}
		b.WriteString("\n  ]\n")
	}
	return b.String()
}

func (m *model) list(b *strings.Builder, key string, entries []modelEntry) {
	if len(entries) == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n  python:\n", key)
	for _, e := range entries {
		fields := []string{fmt.Sprintf("name: %q", e.name)}
		for _, f := range [][2]string{{"max_version", e.limit}, {"version", e.version}} {
			if f[1] != "" {
				fields = append(fields, fmt.Sprintf("%s: %q", f[0], f[1]))
			}
		}
		if e.deps {
			fields = append(fields, "with_dependencies: true")
		}
		if e.pre {
			fields = append(fields, "prereleases: true")
		}
		if m.blockLists {
			fmt.Fprintf(b, "    - %s # entry\n", strings.Join(fields, "\n      "))
		} else {
			fmt.Fprintf(b, "    - { %s }\n", strings.Join(fields, ",\n        "))
		}
	}
}
