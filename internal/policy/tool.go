package policy

import (
	"regexp"
	"slices"
	"strconv"
)

// ruleTools is the rule of tools that are, or are not, on the list.
const ruleTools = "tool_allowlist"

// toolName is what a tool can be called, as tool.CheckName has it. There are no patterns: a
// list of tools is a list of what somebody has looked at.
var toolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// ToolListed answers whether the document, and each that narrows it, lists a tool. A
// document without the list has none. Rules are not asked: DecideCommand does that.
func (p *Policy) ToolListed(name string) Decision {
	d := Decision{Effect: Allow, Rule: ruleTools, ResolvedBy: ByRule, Reason: "tool_allowlist names this tool"}
	for _, l := range p.layers() {
		switch {
		case !l.toolsGiven:
			d.Effect, d.Reason = Deny, "the policy has no tool_allowlist, so no tool may be called"
		case !slices.Contains(l.tools, name):
			d.Effect, d.Reason = Deny, "tool_allowlist does not name this tool"
		default:
			continue
		}
		d.Suggest = suggestTool(name)
		return d
	}
	return d
}

// suggestTool is the lines that would list a tool; "" for what no tool is called.
func suggestTool(name string) string {
	if !toolName.MatchString(name) {
		return ""
	}
	return ruleTools + ":\n  - " + strconv.Quote(name) + "\n"
}
