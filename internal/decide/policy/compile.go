package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Parse reads a document. source is its name in messages, usually a path. The
// error is Problems (a fault.ErrInvalid): everything that was found wrong,
// with its place; there is no Policy then, and a policy in force stays so.
func Parse(source string, data []byte) (*Policy, error) {
	root, problems := loadDocument(source, data)
	if problems != nil {
		return nil, problems
	}
	sum := sha256.Sum256(data)
	c := &compiler{
		source: source,
		claims: map[string]value{},
		policy: &Policy{
			source: source,
			digest: "sha256:" + hex.EncodeToString(sum[:]),
			packages: packageRules{
				locked:  map[pkgref.Ecosystem]bool{},
				allowed: map[packageKey][]listEntry{},
				blocked: map[packageKey][]listEntry{},
			},
		},
	}
	c.document(root)
	if len(c.problems) > 0 {
		slices.SortStableFunc(c.problems, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, c.problems
	}
	slices.SortStableFunc(c.policy.explanations, func(a, b Explanation) int { return cmp.Compare(a.Line, b.Line) })
	return c.policy, nil
}

// section reads one top-level key.
type section struct {
	key  string
	read func(*compiler, value)
}

// sections are the top-level keys, native ones first, in the order in which
// they are read.
func sections() []section {
	return []section{
		{"name", (*compiler).readName},
		{"version", (*compiler).readVersion},
		{"description", (*compiler).description},
		{"mode", compileMode},
		{"isolation", (*compiler).isolation},
		{"defaults", (*compiler).defaults},
		{"packages", (*compiler).packages},
		{"allowed_packages", (*compiler).allowedPackages},
		{"blocked_packages", (*compiler).blockedPackages},
		{"namespaces", (*compiler).readNamespaces},
		{"network_allowlist", (*compiler).networkAllowlist},
		{ruleNetworkPreset, compilePresets},
		{"network_unlisted", compileUnlisted},
		{"network_proxy", compileProxy},
		{publishedPath, (*compiler).publishedPorts},
		{"credentials", compileCredentials},
		{"tool_allowlist", (*compiler).toolAllowlist},
		{"rules", (*compiler).readRules},
		{"environment", (*compiler).readEnvironment},
		{"network", (*compiler).network},
		{"filesystem", (*compiler).filesystem},
		{"resources", (*compiler).resources},
		{"sandbox_mounts", (*compiler).sandboxMounts},
		{"inherit", (*compiler).inherit},
		{"scope", (*compiler).readScope},
		{"metadata", compileMetadata},
		{"disclaimer", compileDisclaimer},
	}
}

// Keys are those that a document may begin with. One with any other is no policy.
func Keys() []string {
	all := sections()
	known := make([]string, len(all))
	for i, s := range all {
		known[i] = s.key
	}
	return known
}

func (c *compiler) document(root *yaml.Node) {
	o := c.object(value{root, rootPath, nil}, Keys()...)
	if o == nil {
		return
	}
	for _, s := range sections() {
		if v, present := o.fields[s.key]; present {
			s.read(c, v)
		}
	}
	c.finishCommands(o)
	if c.injections != nil {
		c.injections.reportUnused()
	}
	unseen{c}.reportUnseen()
	c.absent(o)
}

// absent explains what a document lacks and what that means.
func (c *compiler) absent(o *object) {
	p := &c.policy.packages
	if !p.defaultGiven {
		c.explainEnforced(value{path: "packages.default"}, "absent: a package that no list names is denied")
	}
	if len(p.allowed) == 0 && p.byDefault != Allow && p.byDefault != Hold {
		c.explainEnforced(value{path: "allowed_packages"}, "no package is listed, so none can be installed")
	}
	if !c.policy.commands.judges {
		c.explainEnforced(value{path: "rules"}, "neither rules nor defaults.action: commands are not judged")
	}
	if _, present := o.fields["isolation"]; !present {
		c.explainEnforced(value{path: "isolation"}, "absent: whichever engine the host is set up with")
	}
}

func (c *compiler) readName(v value) {
	if s, ok := c.readText(v); ok {
		c.policy.name = s
		c.explainEnforced(v, "the policy's name in records: %s", plainASCII(s, 60))
	}
}

func (c *compiler) readVersion(v value) {
	if s, ok := c.readText(v); ok {
		c.policy.version = s
		c.explainEnforced(v, "the policy's version in records: %s", plainASCII(s, 60))
	}
}

func (c *compiler) description(v value) {
	if n := v.node; n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value == "" {
		return // agent-sandbox policies have an empty one
	}
	if _, ok := c.readText(v); ok {
		c.explainEnforced(v, "for people only")
	}
}

func (c *compiler) isolation(v value) {
	s, ok := c.readText(v)
	if !ok {
		return
	}
	if !isWord(s) {
		c.failAt(v.node, "isolation must be an engine's name in lower case, and is %q", plainASCII(s, 40))
		return
	}
	c.policy.isolation = s
	switch s {
	case "auto":
		c.explainEnforced(v, "runs under the strongest engine that the host has")
		return
	case "hardware":
		c.explainEnforced(v, "runs under an engine whose wall is of hardware, as the host has proved; refused where none is")
		return
	}
	c.explainEnforced(v, "runs under %s and under nothing weaker; refused where the host can not", s)
}

// isWord reports whether s is a lower-case name such as an engine's.
func isWord(s string) bool {
	if s == "" || len(s) > 40 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

func (c *compiler) inherit(v value) {
	if is, ok := c.boolean(v); ok && is {
		c.explainEnforced(v, "there is nothing to inherit from: this document is the whole policy")
	} else if ok {
		c.explainEnforced(v, "this document is the whole policy")
	}
}

func (c *compiler) readScope(v value) {
	if !isNull(v) {
		c.failAt(v.node, "scope is not supported: a policy applies to the whole run; leave it out")
	}
}

// compileMetadata reads what documents of the toolkit say of themselves.
func compileMetadata(c *compiler, v value) {
	if v.node.Kind != yaml.MappingNode {
		c.failAt(v.node, "metadata has to have keys, and is for people only")
		return
	}
	c.explainEnforced(v, "for people only")
}

func compileDisclaimer(c *compiler, v value) {
	if v.node.Kind == yaml.ScalarNode && v.node.Value == "" {
		return
	}
	if _, ok := c.readText(v); ok {
		c.explainEnforced(v, "for people only")
	}
}

func (c *compiler) readEnvironment(v value) {
	o := c.object(v, keysOf[environmentKeys]()...)
	if o == nil {
		return
	}
	mode, given := o.fields["mode"]
	baseline, based := o.fields["baseline"]
	if !given {
		c.failAt(v.key, "environment needs a mode: ephemeral or persistent")
		return
	}
	word, ok := c.readWord(mode, "ephemeral", "persistent")
	if based {
		if _, isText := c.readText(baseline); isText && ok && word == "ephemeral" {
			c.failAt(baseline.key, "environment.baseline belongs to mode: persistent")
		}
	}
	switch {
	case !ok:
	case word == "ephemeral":
		c.explainEnforced(mode, "the sandbox and its files are gone after the run")
	case !based:
		c.failAt(mode.node, "environment.mode persistent needs environment.baseline, the snapshot to compare with")
	default:
		c.explainOpen(mode, "persistent environments are not kept yet: the sandbox is gone after the run")
	}
}

func (c *compiler) toolAllowlist(v value) {
	elements, ok := c.readList(v)
	if !ok {
		return
	}
	c.policy.toolsGiven = true
	for _, e := range elements {
		switch s, ok := c.readText(e); {
		case ok && !toolName.MatchString(s):
			c.failAt(e.node, "%s must be the name of one tool, which is a letter, then letters, digits, _, . and -, at most 64 in all, and is %q", e.path, plainASCII(s, 80))
		case ok:
			c.policy.tools = append(c.policy.tools, s)
		}
	}
	if len(c.policy.tools) == 0 {
		c.explainEnforced(v, "no tool of the host may be called")
		return
	}
	c.explainEnforced(v, "these tools of the host may be called, where the daemon's configuration has them; rules judge each call")
}
