package policy

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/preset"
)

// ruleNetworkPreset has the preset and its entry behind it.
const ruleNetworkPreset = "network_presets"

// compilePresets adds the names of presets to those of the document's own list.
func compilePresets(c *compiler, v value) {
	elements, ok := c.readList(v)
	if !ok {
		return
	}
	shipped, err := preset.Read()
	if err != nil {
		c.failAt(v.node, "%s: %v", v.path, err)
		return
	}
	var seen []string
	for _, e := range elements {
		name, ok := c.readWord(e, shipped.Names()...)
		switch {
		case !ok:
		case slices.Contains(seen, name):
			c.failAt(e.node, "%s: the preset %s is there already", e.path, name)
		default:
			seen = append(seen, name)
			expandPreset(c, e, shipped.Presets[name])
		}
	}
	if host, n := c.policy.network.crowded(); host != "" {
		c.failAt(v.node, "%s: %s is listed on %d ports, and a name can have %d", v.path, host, n, maxHostPorts)
	}
}

// expandPreset reads a preset's hosts as if they stood in the document at that place.
func expandPreset(c *compiler, at value, p preset.Preset) {
	var names []string
	for i := range p.Hosts {
		node := relocated(&p.Hosts[i], at.node)
		entry, ok := hostReader{c}.readEntry(value{node: node, path: at.path, key: at.node})
		if !ok {
			continue // a mistake of the file, which is told
		}
		entry.preset = p.Name
		c.policy.network = append(c.policy.network, entry)
		names = append(names, entry.String())
	}
	c.explainEnforced(at, "the sandbox can connect to %s: %s", plainASCII(p.Means, 80), plainASCII(strings.Join(names, ", "), 300))
}

// relocated is a copy of a node that stands where another one does.
func relocated(n, at *yaml.Node) *yaml.Node {
	moved := *n
	moved.Line, moved.Column = at.Line, at.Column
	moved.Content = nil
	for _, child := range n.Content {
		moved.Content = append(moved.Content, relocated(child, at))
	}
	return &moved
}

// ruleID is the stable id of an entry.
func (e hostEntry) ruleID() string {
	if e.preset != "" {
		return ruleNetworkPreset + "." + e.preset + "." + e.String()
	}
	return ruleNetworkEntry + "." + e.String()
}

// listName says which list has an entry.
func (e hostEntry) listName() string {
	if e.preset != "" {
		return "in the policy's preset " + e.preset
	}
	return "on the policy's network_allowlist"
}

// presetNames are the words of network_presets; none if the file can't be read, which a
// test of it tells.
func presetNames() []string {
	shipped, err := preset.Read()
	if err != nil {
		return nil
	}
	return shipped.Names()
}
