package policy

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/expression"
)

// commandRules is the part that judges commands, code and tools.
type commandRules struct {
	judges    bool
	byDefault Effect        // of defaults.action; "" is Deny
	given     bool          // defaults.action is in the document
	rules     []commandRule // by priority, highest first; equal ones in the text's order
}

// commandRule is one of the document's rules. Its message is its author's word to
// whoever is refused: short printable ASCII.
type commandRule struct {
	name     string
	message  string
	field    string
	operator string
	text     string
	list     []string
	value    any   // of a rule on an argument: a text, a number or a boolean
	values   []any // or several
	pattern  *expression.Expression
	effect   Effect
	priority int64
	line     int
}

// DecideCommand answers whether a command may start, code may run or a tool
// may be called, by the document's rules: the first that matches, from the
// highest priority, decides; then defaults.action; deny if that is absent. A
// tool must be in tool_allowlist too, if there is one. It never panics.
func (p *Policy) DecideCommand(in CommandInput) Decision {
	d := p.decideCommand(in)
	for _, by := range p.narrowed {
		d = theStricter(d, by.DecideCommand(in))
	}
	return d
}

func (p *Policy) decideCommand(in CommandInput) Decision {
	if in.Tool != nil && p.toolsGiven && !slices.Contains(p.tools, *in.Tool) {
		return Decision{Effect: Deny, Rule: "tool_allowlist", ResolvedBy: ByRule, Reason: "tool_allowlist does not name this tool"}
	}
	if !p.commands.judges {
		return Decision{Effect: Allow, Rule: "rules", ResolvedBy: ByRule, Reason: "the policy has neither rules nor defaults.action"}
	}
	for i := range p.commands.rules {
		r := &p.commands.rules[i]
		matches, ok := r.matchesInput(in)
		if !ok {
			why := "can not be evaluated"
			if in.isOver() {
				why = "takes too long to be evaluated"
			}
			return Decision{Effect: Deny, Rule: "rules." + r.name, ResolvedBy: ByRule, Reason: reason("rule %s %s", shortName(r.name), why)}
		}
		if matches {
			return r.decision()
		}
	}
	if p.commands.byDefault == Allow {
		return Decision{Effect: Allow, Rule: "defaults.action", ResolvedBy: ByRule, Reason: "no rule matches, and defaults.action is allow"}
	}
	d := Decision{Effect: Deny, Rule: "defaults.action", ResolvedBy: ByRule, Reason: "no rule matches, and defaults.action is deny"}
	if !p.commands.given {
		d.Reason = "no rule matches, and defaults.action is not set"
	}
	return d
}

func (r *commandRule) decision() Decision {
	verb := "denies it"
	switch r.effect {
	case Allow:
		verb = "allows it"
	case Hold:
		verb = "has a person asked first"
	case Deny:
	}
	d := Decision{Effect: r.effect, Rule: "rules." + r.name, ResolvedBy: ByRule, Reason: reason("rule %s %s", shortName(r.name), verb)}
	if r.effect != Allow && r.message != "" {
		d.Reason = reason("%s: %s", d.Reason, r.message)
	}
	return d
}

func (in CommandInput) isOver() bool { return in.Over != nil && in.Over() }

// findPattern finds a pattern, as expression.Find does, and is not ok where there was no time for it.
func (in CommandInput) findPattern(pattern *expression.Expression, text string) (found, ok bool) {
	found, ok, _ = pattern.FindUntil(text, in.isOver)
	return found, ok
}

// lookup is a field's value; nil if it is missing.
func (in CommandInput) lookup(field string) *string {
	switch field {
	case "command":
		return in.Command
	case "code":
		return in.Code
	case "findings":
		return in.Findings
	case "tool", "tool_name":
		return in.Tool
	case "arguments":
		if in.Arguments != nil {
			return &in.Arguments.Text
		}
	case "action":
		if in.Command != nil || in.Code != nil {
			execute := "execute"
			return &execute
		}
	}
	return nil
}

// matchesInput reports whether the rule's condition holds; ok is false if that
// can't be told. A missing field never matches, not even "ne".
func (r *commandRule) matchesInput(in CommandInput) (holds, ok bool) {
	if isArgument(r.field) {
		if in.Arguments == nil {
			return false, true
		}
		return r.judgesArgument(in)
	}
	value := in.lookup(r.field)
	if value == nil {
		return false, true
	}
	switch r.operator {
	case "eq":
		return *value == r.text, true
	case "ne":
		return *value != r.text, true
	case "gt":
		return *value > r.text, true
	case "gte":
		return *value >= r.text, true
	case "lt":
		return *value < r.text, true
	case "lte":
		return *value <= r.text, true
	case "in":
		return slices.Contains(r.list, *value), true
	case "not_in":
		return !slices.Contains(r.list, *value), true
	case "contains":
		return strings.Contains(*value, r.text), true
	case "matches":
		if r.pattern != nil {
			return in.findPattern(r.pattern, *value)
		}
	}
	return false, false
}
