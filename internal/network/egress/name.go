package egress

import "strings"

// checkName tells what is wrong with a name that a guest gave, "" if nothing:
// one canonical spelling, lower-case ASCII letters, digits and hyphens, no
// trailing dot. Internationalised names are accepted only in the form that DNS
// carries, so nothing that looks like another name is ever compared. port 0 is
// a DNS question.
func checkName(name string, port int) string {
	switch {
	case port < 0 || port > 65535:
		return "a port is a number from 1 to 65535"
	case name == "":
		return "no name was given"
	case len(name) > 253:
		return "the name has more than 253 characters"
	case strings.HasSuffix(name, "."):
		return "the name ends in a dot; leave it out"
	}
	for label := range strings.SplitSeq(name, ".") {
		if problem := checkLabel(label); problem != "" {
			return problem
		}
	}
	return ""
}

func checkLabel(label string) string {
	switch {
	case label == "":
		return "the name has an empty label"
	case len(label) > 63:
		return "the name has a label of more than 63 characters"
	case label[0] == '-' || label[len(label)-1] == '-':
		return "the name has a label that begins or ends with a hyphen"
	}
	for i := range len(label) {
		c := label[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		case 'A' <= c && c <= 'Z':
			return "the name is not in lower case"
		default:
			return "the name has a character that no name has"
		}
	}
	return ""
}
