package conversion

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Note says what became of a part of the document that is not kept as it was.
type Note struct {
	Line int    `json:"line"` // of the document that was read
	What string `json:"what"` // the key or the rule
	Says string `json:"says"`
	// Changes tells that something is decided otherwise than there; else the part had no say in
	// what Cofferdam judges.
	Changes bool `json:"changes"`
}

// Result is a policy that loads, and what it lacks of the document.
type Result struct {
	Document []byte
	Rules    int // that are kept
	Notes    []Note
}

// Options are what a person may decide.
type Options struct {
	// DropRefusals leaves rules out that refuse and can't be said in our words, instead of
	// failing: what they would refuse is not refused.
	DropRefusals bool
	// Lenient follows release 4.1.0 where the two differ: a document that does not say
	// defaults.action permits what no rule matches, a rule holds whatever its dynamic condition
	// says, and nothing is mounted.
	Lenient bool
}

// converter is one conversion.
type converter struct {
	source string
	opts   Options
	out    *yaml.Node // the policy that is made, a mapping
	notes  []Note
	errs   []error
	names  map[string]bool // of rules
	all    []importedRule  // that were read
	kept   int             // rules
	allows bool            // what no rule matches
}

// Convert reads a document, YAML as version 1.1 has it or JSON. source is its name in messages.
// An error is fault.ErrInvalid, has a line for each thing, and says what to do.
func Convert(source string, data []byte, opts Options) (Result, error) {
	c := &converter{source: source, opts: opts, out: mapping(), names: map[string]bool{}}
	root, err := loadDocument(source, data)
	if err != nil {
		return Result{}, err
	}
	c.document(root)
	if len(c.errs) > 0 {
		return Result{}, joined(c.errs)
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(c.out); err != nil {
		return Result{}, fmt.Errorf("write the policy: %w", err)
	}
	if _, err := policy.Parse(source+" (converted)", text.Bytes()); err != nil {
		return Result{}, err
	}
	slices.SortStableFunc(c.notes, func(a, b Note) int { return a.Line - b.Line })
	return Result{Document: text.Bytes(), Rules: c.kept, Notes: c.notes}, nil
}

// joined is all that is wrong, a line each, twenty at most.
func joined(errs []error) error {
	var lines []string
	for i, err := range errs {
		if i == 20 {
			lines = append(lines, fmt.Sprintf("and %d more", len(errs)-20))
			break
		}
		lines = append(lines, err.Error())
	}
	return fault.New(fault.ErrInvalid, "%s", strings.Join(lines, "\n"))
}

func (c *converter) failAt(n *yaml.Node, format string, args ...any) {
	c.errs = append(c.errs, fault.Invalid("%s:%d: %s", c.source, n.Line, fmt.Sprintf(format, args...)))
}

func (c *converter) noteLeft(n *yaml.Node, what, format string, args ...any) {
	c.notes = append(c.notes, Note{Line: n.Line, What: what, Says: fmt.Sprintf(format, args...)})
}

// changed is a note of what is decided otherwise now.
func (c *converter) changed(n *yaml.Node, what, format string, args ...any) {
	c.noteLeft(n, what, format, args...)
	c.notes[len(c.notes)-1].Changes = true
}

// document converts the whole of it, key by key.
func (c *converter) document(root *yaml.Node) {
	if !slices.ContainsFunc([]string{"rules", "defaults", "network_allowlist", "tool_allowlist", "sandbox_mounts"}, func(key string) bool { return getValue(root, key) != nil }) {
		c.failAt(root, "this is no policy document of the toolkit: it has neither rules nor defaults nor a list of hosts or tools")
		return
	}
	c.convertHead(root)
	c.defaults(getValue(root, "defaults"))
	c.convertList(root, "network_allowlist", "it is not reachable")
	c.convertList(root, "tool_allowlist", "it can't be called")
	c.mounts(getValue(root, "sandbox_mounts"))
	c.convertRules(getValue(root, "rules"))
	for key := range pairsOf(root) {
		switch key.Value {
		case "name", "version", "description", "defaults", "network_allowlist", "tool_allowlist", "sandbox_mounts", "rules":
		case "inherit", "scope":
			c.noteLeft(key, key.Value, "left out: one document is the whole policy, as it is in that evaluator's flat list")
		case "metadata", "disclaimer":
			c.noteLeft(key, key.Value, "left out: it is for people only")
		default:
			c.noteLeft(key, Clean(key.Value), "left out: no release of the toolkit reads it")
		}
	}
}

// convertHead converts what only names the document.
func (c *converter) convertHead(root *yaml.Node) {
	for _, key := range []string{"name", "version", "description"} {
		n := getValue(root, key)
		if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" || strings.TrimSpace(Clean(n.Value)) == "" {
			continue
		}
		value := textNode(strings.TrimSpace(Clean(n.Value)))
		if sentence := Refusal(pairOf(key, value)); sentence != "" {
			c.noteLeft(n, key, "left out: %s", sentence)
			continue
		}
		putValue(c.out, key, value)
	}
}

// convertList keeps the entries of a list that load.
func (c *converter) convertList(root *yaml.Node, key, otherwise string) {
	n := getValue(root, key)
	if n == nil || n.ShortTag() == "!!null" {
		return
	}
	if n.Kind != yaml.SequenceNode {
		c.failAt(n, "%s is no list", key)
		return
	}
	kept := &yaml.Node{Kind: yaml.SequenceNode}
	for _, e := range n.Content {
		if e = followAlias(e); e.Kind != yaml.ScalarNode {
			c.failAt(e, "%s has what is no text", key)
			return
		}
		entry := textNode(e.Value)
		if sentence := Refusal(pairOf(key, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{entry}})); sentence != "" {
			c.changed(e, key+" "+Clean(e.Value), "left out, so %s: %s", otherwise, sentence)
			continue
		}
		kept.Content = append(kept.Content, entry)
	}
	if putValue(c.out, key, kept); key == "tool_allowlist" {
		c.changed(n, key, "kept: a tool that it does not name can't be called; that evaluator does not look at the list")
	}
}

// mounts keeps the host's directories that a session sees.
func (c *converter) mounts(n *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	kept := mapping()
	for key, v := range pairsOf(n) {
		if v.ShortTag() == "!!null" {
			continue
		}
		if c.opts.Lenient {
			c.noteLeft(key, "sandbox_mounts."+Clean(key.Value), "left out: release 4.1.0 does not read it")
			continue
		}
		one := mapping()
		putValue(one, Clean(key.Value), textNode(v.Value))
		if sentence := Refusal(pairOf("sandbox_mounts", one)); sentence != "" {
			c.changed(key, "sandbox_mounts."+Clean(key.Value), "left out, so it is not mounted: %s", sentence)
			continue
		}
		putValue(kept, key.Value, textNode(v.Value))
	}
	if len(kept.Content) > 0 {
		putValue(c.out, "sandbox_mounts", kept)
	}
}

// defaults keeps limits, and says the action that holds where the document leaves it open.
func (c *converter) defaults(n *yaml.Node) {
	kept := mapping()
	action := c.byDefault()
	if n != nil && n.Kind == yaml.MappingNode {
		action = c.convertLimits(n, kept)
	} else if n != nil && n.ShortTag() != "!!null" {
		c.failAt(n, "defaults has to have keys")
	}
	if n == nil || getValue(n, "action") == nil {
		at := c.out
		if n != nil {
			at = n
		}
		if c.opts.Lenient {
			c.noteLeft(at, "defaults.action", "allow, as in release 4.1.0, since the document does not say it; release 5.0.0 would deny")
		} else {
			c.noteLeft(at, "defaults.action", "deny, as in release 5.0.0, since the document does not say it; release 4.1.0 would allow (--release 4.1.0)")
		}
	}
	c.allows = action == "allow"
	kept.Content = slices.Insert(kept.Content, 0, textNode("action"), textNode(action))
	putValue(c.out, "defaults", kept)
}

// byDefault is what the release does where a document does not say it.
func (c *converter) byDefault() string {
	if c.opts.Lenient {
		return "allow"
	}
	return "deny"
}

func (c *converter) convertLimits(n, kept *yaml.Node) (action string) {
	action = c.byDefault()
	for key, v := range pairsOf(n) {
		name := key.Value
		switch {
		case v.ShortTag() == "!!null":
		case name == "action":
			if action = v.Value; !slices.Contains([]string{"allow", "audit", "deny", "block"}, action) {
				c.failAt(v, "defaults.action is %q; it is allow, audit, deny or block", Clean(action))
			}
			action = map[string]string{"allow": "allow", "audit": "allow"}[action]
			if action == "" {
				action = "deny"
			}
			if v.Value != action {
				c.noteLeft(v, "defaults.action", "%s: what %s does", action, Clean(v.Value))
			}
		case name == "network_default" && v.Value == "allow":
			c.changed(v, "defaults.network_default", "deny: an open network is not offered; name the hosts in network_allowlist")
			putValue(kept, name, textNode("deny"))
		case name == "max_tokens" || name == "confidence_threshold":
			c.noteLeft(key, "defaults."+name, "left out: it is about what a model does outside the sandbox")
		default:
			one := mapping()
			putValue(one, name, &yaml.Node{Kind: yaml.ScalarNode, Value: v.Value})
			if sentence := Refusal(pairOf("defaults", one)); sentence != "" {
				c.changed(key, "defaults."+Clean(name), "left out, so the installation's own holds: %s", sentence)
				continue
			}
			putValue(kept, name, &yaml.Node{Kind: yaml.ScalarNode, Value: v.Value})
		}
	}
	return action
}
