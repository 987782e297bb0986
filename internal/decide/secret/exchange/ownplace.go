package exchange

import (
	"regexp"
	"slices"
	"strings"
)

// parameter is a name with its value, as the client wrote both.
type parameter struct{ name, value string }

// formOf are the parameters of a query or form. Some servers part them by semicolons.
func formOf(text string) (all []parameter) {
	for part := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == '&' || c == ';' }) {
		name, value, _ := strings.Cut(part, "=")
		all = append(all, parameter{UnescapeForm(name), UnescapeForm(value)})
	}
	return all
}

// matrixOf are the parameters that a path has behind its segments (;name=value), also where
// their signs are escaped.
func matrixOf(path string) (all []parameter) {
	for segment := range strings.SplitSeq(Unescape(path), "/") {
		for i, part := range strings.Split(segment, ";") {
			if name, value, named := strings.Cut(part, "="); i > 0 && named {
				all = append(all, parameter{name, Unescape(value)})
			}
		}
	}
	return all
}

// inParameters is the parameter of the query or of the path that has another credential. One
// under whose name the client has put a placeholder holds credentials wherever it stands again.
func (p *presented) inParameters() string {
	all := slices.Concat(formOf(p.URL.RawQuery), matrixOf(p.URL.EscapedPath()))
	p.declare(all)
	for _, one := range all {
		for _, is := range foldParameter(one.name) {
			if parameterHoldsKey(is) && p.another(is, one.value) || p.parameters[is] && one.value != "" && !p.holdsPlaceholder(one.value) {
				return "parameter " + is
			}
		}
	}
	return ""
}

// declare has the names of parameters that have a placeholder hold credentials.
func (p *presented) declare(all []parameter) {
	for _, one := range all {
		if p.holdsPlaceholder(one.value) {
			p.parameters[foldParameter(one.name)[0]] = true
		}
	}
}

// inPath looks for a key in a path where a placeholder is swapped, also beside it: the place has no
// name, so it goes by how keys look, and no host says which of two it takes.
func (p *presented) inPath() string {
	if !slices.ContainsFunc(p.ofHost, func(c Credential) bool { return c.swapsIn(Path) }) {
		return ""
	}
	before, behind := p.aroundKey(p.URL.EscapedPath())
	if behind = Unescape(behind); strings.Contains(Unescape(before), ";") { // servers leave parameters out
		before, behind = before+"/"+behind, ""
	}
	for segment := range strings.SplitSeq(p.withoutPlaceholders(Unescape(p.withoutPlaceholders(before))), "/") {
		if likeKey(segment) || keyOfID.MatchString(segment) {
			return "path"
		}
	}
	for segment := range strings.SplitSeq(p.withoutPlaceholders(behind), "/") {
		if (likeKey(segment) || keyOfID.MatchString(segment)) && !names.MatchString(segment) {
			return "path"
		}
	}
	return ""
}

// aroundKey is a path before its first placeholder that ends a segment, and behind it; all of it is before if
// there is none.
func (p *presented) aroundKey(path string) (before, behind string) {
	at, end := len(path), len(path)
	for _, one := range p.placeholders {
		if i := strings.Index(path, one+"/"); i >= 0 && i < at {
			at, end = i, i+len(one)
		}
	}
	return path[:at], path[end:]
}

// names finds whole segments that name things behind the key: a UUID, or a commit's hash. Hosts that take a key
// from a path take it before what it is for.
var names = regexp.MustCompile(`^(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-f]{40}|[0-9a-f]{64})$`)

// keyOfID finds the key of something with a number (ID:KEY), whatever letters it has.
var keyOfID = regexp.MustCompile(`[0-9]{5,}:[A-Za-z0-9_-]{20,}`)

// withoutPlaceholders is a path with a slash for each placeholder.
func (p *presented) withoutPlaceholders(path string) string {
	for _, one := range p.placeholders {
		path = strings.ReplaceAll(path, one, "/")
	}
	return path
}
