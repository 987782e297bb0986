package policy

import (
	"regexp"
	"slices"
	"strconv"
)

// The rules of tools that are, or are not, on the list, and of how many calls there may be.
const (
	ruleTools    = "tool_allowlist"
	ruleMaxCalls = "defaults.max_tool_calls"
)

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

// AnswerCall weighs people's answers about a tool, by d, of a call that would wait. Only
// those count that are bound to all of these digests: the tool's and the arguments'.
func AnswerCall(d Decision, tool string, bound []string, answers []Approval) Decision {
	var about []Approval
	for _, a := range answers {
		if len(bound) > 0 && !slices.ContainsFunc(bound, func(digest string) bool { return !slices.Contains(a.Digests, digest) }) {
			about = append(about, a)
		}
	}
	return answerBy(d, "this call of "+tool, about)
}

// readMaxToolCalls reads defaults.max_tool_calls.
func readMaxToolCalls(c *compiler, v value) {
	if n, ok := c.integer(v, 0, 1e12); ok {
		c.policy.toolCalls, c.policy.callsLimited = n, true
		c.explainEnforced(v, "a sandbox makes at most %d calls of tools", n)
	}
}

// CallsLeft answers whether a sandbox that has made so many calls of tools may make one
// more, by the document and by each that narrows it.
func CallsLeft(p *Policy, made int64) Decision {
	for _, l := range p.layers() {
		if l.callsLimited && made >= l.toolCalls {
			return Decision{Effect: Deny, Rule: ruleMaxCalls, ResolvedBy: ByRule, Reason: reason("this sandbox has made the %d calls of tools that defaults.max_tool_calls lets it make", l.toolCalls)}
		}
	}
	return Decision{Effect: Allow, Rule: ruleMaxCalls, ResolvedBy: ByRule, Reason: "defaults.max_tool_calls leaves more calls"}
}

// suggestTool is the lines that would list a tool; "" for what no tool is called.
func suggestTool(name string) string {
	if !toolName.MatchString(name) {
		return ""
	}
	return ruleTools + ":\n  - " + strconv.Quote(name) + "\n"
}
