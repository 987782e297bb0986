package pip

import (
	"regexp"
	"strings"
)

// requirement is one as the standard of dependency specifiers (PEP 508) writes it, as far as it says what is asked for.
type requirement struct {
	name string // with its extras
	url  string // where it comes from, if not from an index
	// among is the range of its versions, as it is written; "": any, or it is asked for only where
	// a marker holds.
	among string
	under string // that range where a marker holds
}

var (
	startOfName = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?`)
	// startOfClause is an operator with something behind it.
	startOfClause = regexp.MustCompile(`^(?:===|==|~=|!=|<=?|>=?)\s*[^\s,;=]`)
	startOfList   = regexp.MustCompile(`^\[\s*(?:[A-Za-z0-9][A-Za-z0-9._-]*\s*(?:,\s*[A-Za-z0-9][A-Za-z0-9._-]*\s*)*)?\]`)
)

const blanks = " \t\f\v"

// parseRequirement reads one; ok is false for what is none. Blanks may be between all parts.
func parseRequirement(text string) (r requirement, ok bool) {
	text = strings.Trim(text, blanks+"\r\n")
	r.name = startOfName.FindString(text)
	if r.name == "" {
		return r, false
	}
	text = strings.TrimLeft(text[len(r.name):], blanks)
	if extras := startOfList.FindString(text); extras != "" {
		text = strings.TrimLeft(text[len(extras):], blanks)
		if strings.Trim(extras, "[]"+blanks) != "" {
			r.name += extras
		}
	}
	among, _, marked := strings.Cut(text, ";")
	among = strings.Trim(strings.TrimSuffix(strings.TrimPrefix(strings.Trim(among, blanks), "("), ")"), blanks)
	if r.under = among; !marked {
		r.among = among
	}
	switch {
	case text == "", strings.HasPrefix(text, ";"), strings.HasPrefix(text, "("):
		return r, true
	case strings.HasPrefix(text, "@"):
		r.url, r.among, r.under = strings.TrimLeft(text[1:], blanks), "", ""
		return r, r.url != "" && r.url[0] != ';'
	}
	return r, startOfClause.MatchString(text)
}
