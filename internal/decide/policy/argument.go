package policy

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Arguments are those of a tool's call, as rules see them.
type Arguments struct {
	// Text is all of them as JSON, in one form.
	Text string
	// Members are the same decoded, with json.Number for numbers.
	Members map[string]any
}

// argumentsPrefix is before the name of one of a tool's arguments.
const argumentsPrefix = "arguments."

// isArgument tells a field that is one argument. It has a type; all other fields are text.
func isArgument(field string) bool {
	return len(field) > len(argumentsPrefix) && strings.HasPrefix(field, argumentsPrefix)
}

// argumentAt is the argument of a name. In a name, a dot leads into an object, or is a dot. ok is
// false if the name means several arguments: it can't be told then which one is judged.
func (a *Arguments) argumentAt(name string) (v any, ok bool) {
	found := 0
	membersAt(a.Members, name, func(one any) { v, found = one, found+1 })
	return v, found <= 1
}

func membersAt(members map[string]any, name string, each func(any)) {
	if v := members[name]; v != nil {
		each(v)
	}
	for i := range len(name) {
		if below, is := members[name[:i]].(map[string]any); is && name[i] == '.' {
			membersAt(below, name[i+1:], each)
		}
	}
}

// number is one as the toolkit computes with it: exact where it is written as an integer,
// else the double next to it.
type number struct {
	exact *big.Rat // nil: beyond all doubles
	sign  int      // which end, then
}

func numberOf(v any) (n number, ok bool) {
	switch v := v.(type) {
	case bool: // 1 or 0 there
		if v {
			return number{exact: big.NewRat(1, 1)}, true
		}
		return number{exact: new(big.Rat)}, true
	case json.Number:
		return readNumber(string(v))
	}
	return n, false
}

func readNumber(text string) (n number, ok bool) {
	if !strings.ContainsAny(text, ".eE") {
		whole, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return n, false
		}
		return number{exact: new(big.Rat).SetInt(whole)}, true
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case math.IsInf(f, 1):
		return number{sign: 1}, true
	case math.IsInf(f, -1):
		return number{sign: -1}, true
	case err != nil || math.IsNaN(f):
		return n, false
	}
	return number{exact: new(big.Rat).SetFloat64(f)}, true
}

func (n number) compare(other number) int {
	if n.exact != nil && other.exact != nil {
		return n.exact.Cmp(other.exact)
	}
	return n.sign - other.sign
}

// compareArguments orders two texts, or two numbers; ok is false for what has no order.
func compareArguments(a, b any) (order int, ok bool) {
	if a, is := a.(string); is {
		b, is := b.(string)
		return strings.Compare(a, b), is
	}
	x, isNumber := numberOf(a)
	y, also := numberOf(b)
	return x.compare(y), isNumber && also
}

// sameArgument tells whether an argument is the value of a rule. A value of another type is another.
func sameArgument(argument, value any) bool {
	order, ok := compareArguments(argument, value)
	return ok && order == 0
}

// containsArgument looks for a rule's value in a text, in a list, or among an object's
// names; ok is false for what contains nothing.
func containsArgument(argument, value any) (holds, ok bool) {
	text, isText := value.(string)
	switch argument := argument.(type) {
	case string:
		return isText && strings.Contains(argument, text), isText
	case []any:
		for _, one := range argument {
			if sameArgument(one, value) {
				return true, true
			}
		}
		return false, true
	case map[string]any:
		_, holds := argument[text]
		return isText && holds, true
	}
	return false, false
}

// textOfArgument is the text in which an expression looks, as the toolkit writes it; ok is
// false for what it writes in another way than others do.
func textOfArgument(argument any) (text string, ok bool) {
	switch argument := argument.(type) {
	case string:
		return argument, true
	case bool:
		if argument {
			return "True", true
		}
		return "False", true
	case json.Number:
		whole, ok := new(big.Int).SetString(string(argument), 10)
		if ok {
			return whole.String(), true
		}
	}
	return "", false
}

// judgesArgument is matches for a rule on one argument.
func (r *commandRule) judgesArgument(in CommandInput) (holds, ok bool) {
	v, ok := in.Arguments.argumentAt(r.field[len(argumentsPrefix):])
	if !ok || v == nil {
		return false, ok
	}
	switch r.operator {
	case "eq":
		return sameArgument(v, r.value), true
	case "ne":
		return !sameArgument(v, r.value), true
	case "in", "not_in":
		listed := false
		for _, one := range r.values {
			listed = listed || sameArgument(v, one)
		}
		return listed == (r.operator == "in"), true
	case "contains":
		return containsArgument(v, r.value)
	case "matches":
		text, ok := textOfArgument(v)
		if !ok || r.pattern == nil {
			return false, false
		}
		return in.findPattern(r.pattern, text)
	}
	order, ok := compareArguments(v, r.value)
	return map[string]bool{"gt": order > 0, "gte": order >= 0, "lt": order < 0, "lte": order <= 0}[r.operator], ok
}
