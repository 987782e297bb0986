package conversion

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// importedRule is one of the document's.
type importedRule struct {
	at       *yaml.Node
	name     string
	field    string
	operator string
	operand  operand
	action   string
	priority int64
	message  string
	dynamic  *yaml.Node // nil: it has no dynamic condition
}

func (r importedRule) permits() bool { return r.action == "allow" || r.action == "audit" }

func (r importedRule) verbOf() string {
	if r.permits() {
		return "permits"
	}
	return "refuses"
}

// holding is when a condition holds, if its field is there.
type holding int

const (
	sometimes holding = iota // as the condition says
	never
	always
	fails   // it can't be evaluated, and the evaluator denies
	unknown // it can't be said in our words
)

// pythonKind is a value's in Python.
type pythonKind int

const (
	isText pythonKind = iota
	isNumber
	isBoolean
	isNull
	isOther // a date, which no text is, or a mapping
	isList
)

// operand is what a field is compared with.
type operand struct {
	kind pythonKind
	text string
	list []operand
	node *yaml.Node
}

func operandOf(n *yaml.Node) operand {
	n = followAlias(n)
	o := operand{text: n.Value, node: n}
	switch n.Kind {
	case yaml.SequenceNode:
		o.kind = isList
		for _, e := range n.Content {
			o.list = append(o.list, operandOf(e))
		}
		return o
	case yaml.ScalarNode:
	default:
		o.kind = isOther
		return o
	}
	older := policy.InYAML11(n)
	switch tag := n.ShortTag(); {
	case tag == "!!null":
		o.kind = isNull
	case tag == "!!bool" || older == "true or false":
		o.kind = isBoolean
	case tag == "!!int" || tag == "!!float" || older == "a number":
		o.kind = isNumber
	case tag != "!!str" || older != "":
		o.kind = isOther
	}
	return o
}

// listTexts lists the operand's elements that are texts.
func (o operand) listTexts() []string {
	var all []string
	for _, e := range o.list {
		if e.kind == isText {
			all = append(all, e.text)
		}
	}
	return all
}

// condition is the rule's in our words. Fields are texts but for arguments, and Python compares
// a text with nothing else: what is of another type is never equal, and has no order.
func (r importedRule) condition() (holding, *yaml.Node, string) {
	if strings.HasPrefix(r.field, "arguments.") {
		return r.ofArgument()
	}
	switch r.operator {
	case "in", "not_in":
		return r.membership()
	case "matches":
		return r.expression()
	}
	o := r.operand
	if o.kind != isText {
		const why = "a text is compared with what is none"
		switch r.operator {
		case "eq":
			return never, nil, why
		case "ne":
			return always, r.anything(), why
		}
		return fails, r.anything(), why
	}
	if o.text != "" {
		return sometimes, r.saidCondition(r.operator, textNode(o.text)), ""
	}
	switch r.operator {
	case "contains", "gte":
		return always, r.anything(), "every text has the empty one"
	case "lt":
		return never, nil, "nothing is before the empty text"
	case "eq", "lte":
		return sometimes, r.saidCondition("matches", textNode(`\A\Z`)), ""
	}
	return sometimes, r.saidCondition("matches", textNode(`(?s).`)), "" // ne, gt
}

func (r importedRule) saidCondition(operator string, value *yaml.Node) *yaml.Node {
	n := mapping()
	putValue(n, "field", textNode(r.field))
	putValue(n, "operator", textNode(operator))
	putValue(n, "value", value)
	return n
}

// anything holds wherever the field is there.
func (r importedRule) anything() *yaml.Node { return r.saidCondition("matches", textNode(`\A`)) }

// membership is in and not_in. With a text they are about its parts.
func (r importedRule) membership() (holding, *yaml.Node, string) {
	o := r.operand
	var members []string
	switch o.kind {
	case isList:
		members = o.listTexts()
	case isText:
		if members = splitParts(o.text); members == nil {
			return unknown, nil, "that something is a part of so long a text can't be said"
		}
	case isOther:
		if o.node.Kind == yaml.MappingNode {
			for key := range pairsOf(o.node) {
				if k := operandOf(key); k.kind == isText {
					members = append(members, k.text)
				}
			}
			break
		}
		return fails, r.anything(), "nothing is in what is no list"
	default:
		return fails, r.anything(), "nothing is in what is no list"
	}
	if len(members) == 0 {
		if r.operator == "in" {
			return never, nil, "the list has no text"
		}
		return always, r.anything(), "the list has no text"
	}
	if !slices.Contains(members, "") {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, one := range members {
			list.Content = append(list.Content, textNode(one))
		}
		return sometimes, r.saidCondition(r.operator, list), ""
	}
	return r.withEmpty(members)
}

// withEmpty is membership in a list that has the empty text, which our lists can't.
func (r importedRule) withEmpty(members []string) (holding, *yaml.Node, string) {
	if r.operator == "not_in" {
		return unknown, nil, "a list with an empty text is not read with not_in"
	}
	var forms []string
	for _, one := range members {
		forms = append(forms, regexp.QuoteMeta(one))
	}
	return sometimes, r.saidCondition("matches", textNode(`\A(?:`+strings.Join(forms, "|")+`)\Z`)), ""
}

// maxParts bounds a text of which all parts are written out.
const maxParts = 24

// splitParts returns all parts of a short text, the empty one among them; nil: it is too long.
func splitParts(s string) []string {
	runes := []rune(s)
	if len(runes) > maxParts {
		return nil
	}
	all := []string{""}
	for i := range runes {
		for j := i + 1; j <= len(runes); j++ {
			if part := string(runes[i:j]); !slices.Contains(all, part) {
				all = append(all, part)
			}
		}
	}
	return all
}

// expression is matches, which in Python turns the operand into a text.
func (r importedRule) expression() (holding, *yaml.Node, string) {
	o := r.operand
	switch {
	case o.kind == isText && o.text == "":
		return always, r.anything(), "an empty expression matches everything"
	case o.kind == isText:
		return sometimes, r.saidCondition("matches", textNode(o.text)), ""
	case o.kind == isNull:
		return sometimes, r.saidCondition("matches", textNode("None")), ""
	case o.kind == isBoolean:
		word := "False"
		if slices.Contains([]string{"true", "yes", "on"}, strings.ToLower(o.text)) {
			word = "True"
		}
		return sometimes, r.saidCondition("matches", textNode(word)), ""
	case o.kind == isNumber && whole.MatchString(o.text):
		return sometimes, r.saidCondition("matches", textNode(o.text)), ""
	}
	return unknown, nil, "the expression is no text"
}

// whole is a number whose text is the same in Python.
var whole = regexp.MustCompile(`^(?:0|-?[1-9][0-9]{0,17})$`)

// mayFail tells whether a condition that can't be said here may be one that can't be evaluated
// anywhere: then there is a denial in it.
func (r importedRule) mayFail() bool {
	switch r.operator {
	case "matches":
		return r.operand.kind != isNumber
	case "in", "not_in":
		return r.operand.kind != isList && r.operand.kind != isText
	}
	return r.operator != "eq" && r.operator != "ne"
}

// ofArgument compares one argument of a tool, which has a type of its own. Our rules compare it as Python does.
func (r importedRule) ofArgument() (holding, *yaml.Node, string) {
	o := r.operand
	simple := func(o operand) (*yaml.Node, bool) {
		switch {
		case o.kind == isText && o.text != "":
			return textNode(o.text), true
		case o.kind == isNumber && whole.MatchString(o.text):
			return &yaml.Node{Kind: yaml.ScalarNode, Value: o.text}, true
		case o.kind == isBoolean && (o.text == "true" || o.text == "false"):
			return &yaml.Node{Kind: yaml.ScalarNode, Value: o.text}, true
		}
		return nil, false
	}
	const why = "an argument can't be compared with such a value"
	if r.operator != "in" && r.operator != "not_in" {
		if value, ok := simple(o); ok {
			return sometimes, r.saidCondition(r.operator, value), ""
		}
		return unknown, nil, why
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, e := range o.list {
		value, ok := simple(e)
		if !ok {
			return unknown, nil, why
		}
		list.Content = append(list.Content, value)
	}
	if len(list.Content) == 0 {
		return unknown, nil, why
	}
	return sometimes, r.saidCondition(r.operator, list), ""
}
