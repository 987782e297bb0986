package policy

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// What plain text is something else in YAML 1.1. Other readers of agent-sandbox policies go by
// that version, so that "value: on" is a boolean there, which no text equals.
var (
	boolean11 = regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|true|True|TRUE|false|False|FALSE)$`)
	number11  = regexp.MustCompile(`^(?:[-+]?0b[01_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])*(?:\.[0-9_]*)?(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	date11    = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?)?$`)
)

// InYAML11 says what a scalar is to readers of YAML 1.1 if it is no text there; "": it is text.
func InYAML11(n *yaml.Node) string {
	if n.ShortTag() != "!!str" {
		return "a value of its own kind"
	}
	return inYAML11(n)
}

// inYAML11 says what a value is in YAML 1.1 if it is no text there; "": it is.
func inYAML11(n *yaml.Node) string {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	switch {
	case n.ShortTag() != "!!str", n.Style&quoted != 0:
		return ""
	case boolean11.MatchString(n.Value):
		return "true or false"
	case number11.MatchString(n.Value):
		return "a number"
	case date11.MatchString(n.Value):
		return "a date"
	case n.Value == "=":
		return "nothing that is read"
	}
	return ""
}

// leadingZero tells a number that is octal in YAML 1.1, and decimal in 1.2.
func leadingZero(text string) bool {
	text = strings.TrimLeft(text, "+-")
	return len(text) > 1 && text[0] == '0' && '0' <= text[1] && text[1] <= '9'
}
