package conversion

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

const (
	maxRules    = 1000
	maxPriority = 1_000_000
)

func (c *converter) convertRules(n *yaml.Node) {
	kept := &yaml.Node{Kind: yaml.SequenceNode}
	if n != nil && n.ShortTag() != "!!null" {
		if n.Kind != yaml.SequenceNode {
			c.failAt(n, "rules is no list")
			return
		}
		if len(n.Content) > maxRules {
			c.failAt(n, "rules has %d rules, and at most %d are read", len(n.Content), maxRules)
			return
		}
		var all []importedRule
		for _, e := range n.Content {
			if r, ok := c.readRule(followAlias(e)); ok {
				all = append(all, r)
			}
		}
		c.renumberPriorities(all)
		c.all = all
		for _, r := range all {
			if made := c.convertRule(r); made != nil {
				kept.Content = append(kept.Content, made)
			}
		}
	}
	c.kept = len(kept.Content)
	putValue(c.out, "rules", kept)
}

// readRule takes a rule as the toolkit's own loader does, or says why that would not take it.
func (c *converter) readRule(n *yaml.Node) (r importedRule, ok bool) {
	r = importedRule{at: n}
	condition := getValue(n, "condition")
	field, operator, value := getValue(condition, "field"), getValue(condition, "operator"), getValue(condition, "value")
	name, action := getValue(n, "name"), getValue(n, "action")
	for _, part := range []struct {
		key   string
		given *yaml.Node
	}{{"name", name}, {"action", action}, {"condition.field", field}, {"condition.operator", operator}, {"condition.value", value}} {
		if part.given == nil || part.key != "condition.value" && part.given.Kind != yaml.ScalarNode {
			c.failAt(n, "a rule needs a %s", part.key)
			return r, false
		}
	}
	r.name, r.field, r.operator, r.action, r.operand = c.unique(name.Value), field.Value, operator.Value, action.Value, operandOf(value)
	if !slices.Contains([]string{"eq", "ne", "gt", "lt", "gte", "lte", "in", "not_in", "matches", "contains"}, r.operator) {
		c.failAt(operator, "rule %s: %q is no operator", r.name, Clean(r.operator))
		return r, false
	}
	if !slices.Contains([]string{"allow", "audit", "deny", "block"}, r.action) {
		c.failAt(action, "rule %s: %q is no action", r.name, Clean(r.action))
		return r, false
	}
	if p := getValue(n, "priority"); p != nil && p.ShortTag() != "!!null" {
		priority, err := strconv.ParseInt(p.Value, 10, 64)
		if err != nil {
			c.failAt(p, "rule %s: the priority %q is no whole number", r.name, Clean(p.Value))
			return r, false
		}
		r.priority = priority
	}
	if m := getValue(n, "message"); m != nil && m.Kind == yaml.ScalarNode && m.ShortTag() == "!!str" {
		r.message = strings.TrimSpace(Clean(m.Value))
	}
	if d := getValue(n, "dynamic_condition"); d != nil && d.ShortTag() != "!!null" {
		r.dynamic = d
	}
	return r, true
}

// unique is a rule's name that no other has.
func (c *converter) unique(name string) string {
	base := strings.TrimSpace(Clean(name))
	if base == "" {
		base = "rule"
	}
	made := base
	for i := 2; c.names[made]; i++ {
		made = base + "-" + strconv.Itoa(i)
	}
	c.names[made] = true
	return made
}

// renumberPriorities numbers priorities anew where some are beyond what is read, in their order.
func (c *converter) renumberPriorities(all []importedRule) {
	var given []int64
	beyond := false
	for _, r := range all {
		given = append(given, r.priority)
		beyond = beyond || r.priority > maxPriority || r.priority < -maxPriority
	}
	if !beyond {
		return
	}
	slices.Sort(given)
	given = slices.Compact(given)
	for i := range all {
		at, _ := slices.BinarySearch(given, all[i].priority)
		all[i].priority = int64(at)
	}
	c.noteLeft(all[0].at, "priorities", "numbered anew in their order, since some are beyond %d", maxPriority)
}

// isKnownField tells the fields that Cofferdam can have.
func isKnownField(field string) bool {
	return slices.Contains([]string{"command", "code", "tool", "tool_name", "arguments", "action"}, field) || strings.HasPrefix(field, "arguments.")
}

// convertRule converts the rule to our words; nil: it is left out, and noted or an error.
func (c *converter) convertRule(r importedRule) *yaml.Node {
	what := "rule " + r.name
	if !isKnownField(r.field) {
		c.noteLeft(r.at, what, "left out: the field %s is never known here, so it %s nothing", Clean(r.field), r.verbOf())
		return nil
	}
	holds, condition, why := r.condition()
	switch holds {
	case never:
		c.noteLeft(r.at, what, "left out: it never holds, since %s", why)
		return nil
	case unknown:
		return c.unsaid(r, why)
	case fails:
		c.noteLeft(r.at, what, "always refuses where it is reached, as there: it can't be evaluated, since %s", why)
		r.action = "deny"
	case always:
		c.noteLeft(r.at, what, "always holds, since %s", why)
	case sometimes:
	}
	made := c.writtenRule(r, condition)
	if sentence := Refusal(pairOf("rules", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{made}})); sentence != "" {
		return c.unsaid(r, sentence)
	}
	switch {
	case r.dynamic != nil && c.opts.Lenient:
		c.noteLeft(r.at, what, "holds at all times: release 4.1.0 does not read its dynamic condition")
	case r.dynamic == nil || holds == fails: // what can't be evaluated denies before that is asked
	case r.permits():
		c.changed(r.at, what, "left out: it permits under a dynamic condition, which is not read")
		return nil
	default:
		c.changed(r.at, what, "refuses at all times: its dynamic condition is not read")
	}
	return made
}

// permitted tells whether something behind a rule permits: a later rule, or the default.
func (c *converter) permitted(r importedRule) bool {
	return c.allows || slices.ContainsFunc(c.all, func(other importedRule) bool {
		behind := other.priority < r.priority || other.priority == r.priority && other.at.Line >= r.at.Line
		return behind && other.at != r.at && other.permits() && isKnownField(other.field)
	})
}

// unsaid is a rule that can't be said in our words.
func (c *converter) unsaid(r importedRule, why string) *yaml.Node {
	switch {
	case r.permits() && (!r.mayFail() || !c.permitted(r)):
		c.changed(r.at, "rule "+r.name, "left out, so it permits nothing: %s", why)
	case c.opts.DropRefusals:
		c.changed(r.at, "rule "+r.name, "LEFT OUT, SO WHAT IT WOULD REFUSE IS NOT REFUSED: %s", why)
	case r.permits():
		c.failAt(r.at, "rule %s permits by what can't be said here: %s; if it can't be evaluated there either, all that comes to it is denied, and what is behind it would permit that; say it otherwise, or leave such rules out with --drop-refusals", r.name, why)
	default:
		c.failAt(r.at, "rule %s refuses what can't be said here: %s; say it otherwise, or leave such rules out with --drop-refusals", r.name, why)
	}
	return nil
}

func (c *converter) writtenRule(r importedRule, condition *yaml.Node) *yaml.Node {
	made := mapping()
	putValue(made, "name", textNode(r.name))
	putValue(made, "condition", condition)
	putValue(made, "action", textNode(r.action))
	if r.priority != 0 {
		putValue(made, "priority", &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatInt(r.priority, 10)})
	}
	if r.message != "" {
		putValue(made, "message", textNode(r.message))
	}
	return made
}
