package policy

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

const (
	maxRules   = 1000
	maxPattern = 1000 // bytes
	maxSteps   = 200_000
)

func (c *compiler) readRules(v value) {
	elements, ok := c.readList(v)
	if !ok {
		return
	}
	if len(elements) > maxRules {
		c.failAt(v.node, "rules has %d rules, and at most %d are read", len(elements), maxRules)
		return
	}
	names := map[string]int{}
	for _, e := range elements {
		c.readRule(e, names)
	}
}

// finishCommands orders the rules and settles whether commands are judged.
func (c *compiler) finishCommands(o *object) {
	_, present := o.fields["rules"]
	k := &c.policy.commands
	k.judges = present || k.given
	slices.SortStableFunc(k.rules, func(a, b commandRule) int { return cmp.Compare(b.priority, a.priority) })
	if present && !k.given {
		c.explainEnforced(value{path: "defaults.action"}, "absent: a command, code or tool that no rule matches is denied")
	}
}

func (c *compiler) readRule(v value, names map[string]int) {
	o := c.object(v, keysOf[ruleKeys]()...)
	if o == nil {
		return
	}
	r := commandRule{line: v.node.Line}
	problems := len(c.problems)
	for _, key := range []string{"name", "condition", "action"} {
		if _, given := o.fields[key]; !given {
			c.failAt(v.node, "%s needs %s", v.path, key)
		}
	}
	if f, given := o.fields["name"]; given {
		r.name, _ = c.readText(f)
		if line, twice := names[r.name]; twice {
			c.failAt(f.node, "%s: a rule of this name is on line %d", f.path, line)
		}
		names[r.name] = f.node.Line
		r.name = plainASCII(r.name, 80)
	}
	action := c.ruleDetails(o, &r)
	if f, given := o.fields["condition"]; given {
		c.condition(f, &r)
	}
	if len(c.problems) > problems {
		return
	}
	if f, given := o.fields["action"]; given && r.effect == Hold && !ofTools(r.field) {
		c.failAt(f.node, "%s: approve is for calls of tools, and the field %s is of none; the fields of a call are tool (or tool_name), arguments and arguments.NAME", f.path, plainASCII(r.field, 40))
		return
	}
	c.policy.commands.rules = append(c.policy.commands.rules, r)
	if !knownField(r.field) {
		c.explainOpen(v, "%s: the field %s is never known here, so this %s rule never applies", plainASCII(r.name, 60), plainASCII(r.field, 40), action)
		return
	}
	c.explainEnforced(v, "%s: %s where %s %s (priority %d)", plainASCII(r.name, 60), action, r.field, r.operator, r.priority)
}

// ruleDetails reads what is not the condition; it returns the action's word.
func (c *compiler) ruleDetails(o *object, r *commandRule) (action string) {
	if f, given := o.fields["action"]; given {
		action, _ = c.readWord(f, "allow", "audit", "deny", "block", actionApprove)
		r.effect = actionEffect(action)
	}
	if f, given := o.fields["priority"]; given {
		r.priority, _ = c.integer(f, -1_000_000, 1_000_000)
	}
	for _, key := range []string{"message", "description"} {
		if f, given := o.fields[key]; given && (f.node.Kind != yaml.ScalarNode || f.node.Value != "") {
			if text, ok := c.readText(f); ok && key == "message" {
				r.message = plainASCII(strings.Join(strings.Fields(text), " "), maxMessage)
			}
		}
	}
	if f, given := o.fields["dynamic_condition"]; given && !isNull(f) {
		c.failAt(f.key, "%s is not supported; leave it out", f.path)
	}
	if f, given := o.fields["override"]; given {
		if is, ok := c.boolean(f); ok && is {
			c.failAt(f.node, "%s is not supported: there is no parent document to override", f.path)
		}
	}
	return action
}

// maxMessage bounds what a rule's author says to whoever is refused.
const maxMessage = 200

// actionApprove has a person asked about a call of a tool.
const actionApprove = "approve"

// actionEffect: allow and audit permit, approve asks a person, the others refuse.
func actionEffect(action string) Effect {
	switch action {
	case "allow", "audit":
		return Allow
	case actionApprove:
		return Hold
	}
	return Deny
}

// ofTools tells the fields that only a call of a tool has: a rule on another one can
// match what nobody can be asked about.
func ofTools(field string) bool {
	return slices.Contains([]string{"tool", "tool_name", "arguments"}, field) || isArgument(field)
}

// knownField tells the fields that can ever have a value here.
func knownField(field string) bool {
	return slices.Contains([]string{"command", "code", "findings", "tool", "tool_name", "arguments", "action"}, field) || isArgument(field)
}

func (c *compiler) condition(v value, r *commandRule) {
	o := c.object(v, keysOf[conditionKeys]()...)
	if o == nil {
		return
	}
	for _, key := range []string{"field", "operator", "value"} {
		if _, given := o.fields[key]; !given {
			c.failAt(v.node, "%s needs %s", v.path, key)
			return
		}
	}
	field := o.fields["field"]
	var ok bool
	if r.field, ok = c.readText(field); !ok {
		return
	}
	r.operator, ok = c.readWord(o.fields["operator"], "eq", "ne", "gt", "lt", "gte", "lte", "in", "not_in", "matches", "contains")
	if !ok {
		return
	}
	if !knownField(r.field) {
		if r.effect != Allow {
			c.failAt(field.node, "%s: %q is never known here, so this rule could never refuse anything; the fields are command, code, findings, tool (or tool_name), arguments, arguments.NAME and action",
				field.path, plainASCII(r.field, 40))
		}
		return
	}
	c.operand(o.fields["value"], r)
}

// operand reads the value that a known field is compared with. It is text, but for an
// argument.
func (c *compiler) operand(v value, r *commandRule) {
	if isArgument(r.field) && r.operator != "matches" {
		readArgumentOperand(c, v, r)
		return
	}
	if r.operator == "in" || r.operator == "not_in" {
		elements, _ := c.readList(v)
		for _, e := range elements {
			if s, ok := c.readText(e); ok {
				r.list = append(r.list, s)
			}
		}
		return
	}
	var ok bool
	if r.text, ok = c.readText(v); !ok || r.operator != "matches" {
		return
	}
	r.pattern = c.expression(v, r.text)
}

// readArgumentOperand reads what an argument is compared with: a text, a number or a boolean.
func readArgumentOperand(c *compiler, v value, r *commandRule) {
	if r.operator != "in" && r.operator != "not_in" {
		r.value, _ = readArgument(c, v)
		return
	}
	elements, _ := c.readList(v)
	for _, e := range elements {
		if one, ok := readArgument(c, e); ok {
			r.values = append(r.values, one)
		}
	}
}

// plainNumber is what is the same number in every version of YAML, and in JSON.
var plainNumber = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$`)

func readArgument(c *compiler, v value) (any, bool) {
	n := v.node
	if n.Kind != yaml.ScalarNode || !slices.Contains([]string{"!!int", "!!float", "!!bool"}, n.ShortTag()) {
		return c.readText(v)
	}
	switch {
	case n.ShortTag() == "!!bool" && (n.Value == "true" || n.Value == "false"):
		return n.Value == "true", true
	case n.ShortTag() == "!!bool":
		c.failAt(n, "%s must be written true or false, and is %q", v.path, plainASCII(n.Value, 40))
		return nil, false
	case len(n.Value) > 64 || !plainNumber.MatchString(n.Value):
		c.failAt(n, "%s must be a plain decimal number of at most 64 characters, and is %q", v.path, plainASCII(n.Value, 40))
		return nil, false
	}
	return json.Number(n.Value), true
}
