package policy_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// The reference evaluator: it knows a few versions by their rank and a few
// ranges by the ranks that they hold, and nothing of the real code.

type model struct {
	allowed, blocked                    []modelEntry
	byDefault, sdist, minAge, ageSource string
	scripts, toolchains, similar        string
	hashes                              bool
	rules                               []modelRule
	action                              string
	hasRules, blockLists                bool
}

type modelEntry struct {
	name, limit, version string
	deps, pre, scripts   bool
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

// covers is in for what is refused: pre-releases at its ends are in, too.
func covers(text string, rank int) bool {
	switch text {
	case "<2":
		return rank < 5
	case ">=1.0,<3":
		return 1 <= rank && rank < 9
	}
	return in(text, rank)
}

func in(text string, rank int) bool {
	from, to := holds(text)
	return from <= rank && rank < to
}

func isPre(rank int) bool { return slices.Contains([]int{1, 4, 7, 8}, rank) }

// decide is the order of docs/policy.md, said once more.
func (m *model) decide(q question) (policy.Effect, policy.ResolvedBy) {
	for _, b := range m.blocked {
		if b.name == q.name && covers(b.version, q.rank) {
			return policy.Deny, policy.ByBlocklist
		}
	}
	if q.malware != "" && (q.malware == "every" || in(q.malware, q.rank)) {
		return policy.Deny, policy.ByAdvisory
	}
	if q.owned && !q.atOwner {
		return policy.Deny, policy.ByNamespace
	}
	here := q.pinsOf(q.rank)
	if q.lock != "" && len(here) == 0 && (q.lock == "frozen" || len(q.pins) > 0) {
		return policy.Deny, policy.ByLockfile
	}
	effect, by := m.release(q, len(here) > 0)
	if effect == policy.Deny {
		return effect, by
	}
	if effect, by = m.file(q, here, effect, by); effect == policy.Hold {
		return q.answered(by)
	}
	return effect, by
}

// answered is what people's answers make of a hold.
func (q question) answered(by policy.ResolvedBy) (policy.Effect, policy.ResolvedBy) {
	effect := policy.Hold
	for _, a := range q.answers {
		if a.rank != q.rank {
			continue
		}
		if a.denied {
			return policy.Deny, policy.ByApproval
		}
		for _, d := range a.digests {
			if strings.HasPrefix(d, "sha") && slices.Contains(q.digests, d) {
				effect, by = policy.Allow, policy.ByApproval
			}
		}
	}
	return effect, by
}

// release is what is decided before the file is looked at.
func (m *model) release(q question, pinned bool) (policy.Effect, policy.ResolvedBy) {
	if pinned && q.trusted {
		return policy.Allow, policy.ByLockfile
	}
	if admits, listed := m.entry(q.name, q.rank); listed {
		if admits {
			return policy.Allow, policy.ByAllowlist
		}
		return policy.Deny, policy.ByAllowlist
	}
	if m.edge(q.name, q.rank, q.edges) {
		return policy.Allow, policy.ByDependency
	}
	effect, by := policy.Deny, policy.ByDefault
	switch {
	case q.toolchain:
		if by = policy.ByToolchain; m.toolchains != "" {
			effect = policy.Effect(m.toolchains)
		}
	case m.byDefault != "":
		effect = policy.Effect(m.byDefault)
		if similar := policy.Effect(m.similar); q.lookalike && effect != policy.Deny && strict(similar) > strict(effect) {
			effect, by = similar, policy.ByAdvisory
		}
	}
	if effect == "" {
		effect = policy.Deny
	}
	if effect != policy.Deny && isPre(q.rank) && !pinned {
		return policy.Deny, policy.ByDefault
	}
	return effect, by
}

// strict orders effects; what is not set is as strict as a denial.
func strict(e policy.Effect) int {
	if e == policy.Allow {
		return 0
	}
	if e == policy.Hold {
		return 1
	}
	return 2
}

// file narrows what is not denied.
func (m *model) file(q question, here []string, effect policy.Effect, by policy.ResolvedBy) (policy.Effect, policy.ResolvedBy) {
	if len(here) > 0 {
		same, other := false, false
		for _, want := range here {
			for _, got := range q.digests {
				same = same || want == got
				other = other || want[:6] == got[:6]
			}
		}
		if !same && (other || q.complete) {
			return policy.Deny, policy.ByLockfile
		}
	}
	stricter := func(e policy.Effect) {
		if e == "" || e == policy.Deny || (e == policy.Hold && effect == policy.Allow) {
			effect, by = e, policy.ByAllowlist
		}
		if effect == "" {
			effect = policy.Deny
		}
	}
	if q.kind == policy.KindOther {
		return policy.Deny, policy.ByAllowlist
	}
	switch {
	case q.kind == policy.KindSdist && m.sdist == "throwaway", q.kind == policy.KindBuilt && m.sdist != "throwaway" && m.sdist != "allow":
		stricter(policy.Deny)
	case q.kind == policy.KindRan && m.scripts != "throwaway" && m.scripts != "allow" && !m.trustsScripts(q.name):
		stricter(policy.Deny)
	case q.kind == policy.KindSdist:
		stricter(policy.Effect(m.sdist))
	}
	if m.minAge != "" && m.ageSource != "ignore" && effect != policy.Deny {
		known, age := q.known, q.age
		if m.ageSource == "first-seen" {
			known, age = q.seen, q.seenAge
		}
		if !known || age < 0 {
			stricter(policy.Hold)
		} else if age < 7*24*time.Hour {
			stricter(policy.Deny)
		}
	}
	if q.scripts && q.kind != policy.KindRan && effect != policy.Deny && !m.runsScripts(q.name, q.rank) {
		word := policy.Effect(m.scripts)
		if word == "throwaway" {
			word = policy.Deny
		}
		stricter(word)
	}
	if m.hashes && effect != policy.Deny && (q.digest == "md5" || q.digest == "" && q.complete) {
		stricter(policy.Deny)
	}
	return effect, by
}

func (m *model) trustsScripts(name string) bool {
	return slices.ContainsFunc(m.allowed, func(e modelEntry) bool { return e.name == name && e.scripts })
}

func (m *model) runsScripts(name string, rank int) bool {
	return slices.ContainsFunc(m.allowed, func(e modelEntry) bool {
		return e.name == name && e.scripts && in(e.limit, rank) && in(e.version, rank) && (e.pre || !isPre(rank))
	})
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
			pre := !slices.ContainsFunc(m.allowed, func(o modelEntry) bool { return o.name == a.name && o.deps && !o.pre })
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

// The rest draws a model and writes it as a document.

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
		scripts: rapid.Bool().Draw(rt, "install_scripts"),
	}
}

func drawDocument(rt *rapid.T) *model {
	word := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(rt, label) }
	m := &model{
		byDefault:  word("default", "", "", "deny", "hold", "allow"),
		sdist:      word("sdist", "", "deny", "hold", "allow", "throwaway"),
		minAge:     word("min_release_age", "", "", "7d"),
		ageSource:  word("age_source", "", "trusted", "first-seen", "ignore"),
		scripts:    word("install_scripts", "", "deny", "hold", "allow", "throwaway"),
		toolchains: word("toolchains", "", "deny", "hold", "allow"),
		similar:    word("similar_names", "", "deny", "hold", "allow"),
		hashes:     rapid.Bool().Draw(rt, "require_hashes"),
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
	fmt.Fprintf(&b, "packages:\n  require_hashes: %t\n", m.hashes)
	for _, f := range [][2]string{{"install_scripts", m.scripts}, {"toolchains", m.toolchains}, {"similar_names", m.similar}, {"default", m.byDefault}, {"sdist", m.sdist}, {"min_release_age", m.minAge}, {"age_source", m.ageSource}} {
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
		if e.scripts {
			fields = append(fields, "install_scripts: true")
		}
		if m.blockLists {
			fmt.Fprintf(b, "    - %s # entry\n", strings.Join(fields, "\n      "))
		} else {
			fmt.Fprintf(b, "    - { %s }\n", strings.Join(fields, ",\n        "))
		}
	}
}
