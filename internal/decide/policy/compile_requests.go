package policy

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/expression"
)

// requestReader reads what entries of a list of names ask of requests.
type requestReader struct{ c *compiler }

// readRules reads an entry's rules, if it has any; false: they are wrong.
func (r requestReader) readRules(entry *hostEntry, o *object) bool {
	problems := len(r.c.problems)
	rules := &requestRules{maxBody: noLimit}
	var asks value
	for _, key := range []string{"methods", "paths", "max_body", "deny_patterns", "git"} {
		if f, given := o.fields[key]; given {
			asks, entry.requests = f, rules
		}
	}
	if entry.requests == nil {
		return true
	}
	if entry.tcp {
		r.c.failAt(asks.key, "%s can't stand beside tcp: true: what passes unread has no requests to judge; keep one of them", asks.path)
		return false
	}
	if !strings.Contains(entry.Host, ".") {
		r.c.failAt(asks.key, "%s needs a host with a dot in its name: no certificate is made for %s", asks.path, plainASCII(entry.Host, 60))
		return false
	}
	r.methods(o, rules)
	r.readPaths(o, rules)
	r.readBody(o, rules)
	r.readGit(o, rules)
	if len(r.c.problems) > problems {
		return false
	}
	r.c.explainEnforced(asks, "%s: TLS to it is ended outside of the sandbox, and %s", entry.NetworkPattern, rules)
	return true
}

func (r requestReader) methods(o *object, rules *requestRules) {
	f, given := o.fields["methods"]
	if !given {
		return
	}
	rules.methods = []string{}
	for _, e := range r.readSome(f, maxMethods) {
		if s, ok := r.c.readText(e); ok && !isMethod(s) {
			r.c.failAt(e.node, "%s: %q is no method in capitals, or one that is never passed on (CONNECT, TRACE)", e.path, plainASCII(s, 40))
		} else if ok {
			rules.methods = append(rules.methods, s)
		}
	}
}

func (r requestReader) readPaths(o *object, rules *requestRules) {
	f, given := o.fields["paths"]
	if !given {
		return
	}
	for _, e := range r.readSome(f, maxPaths) {
		s, ok := r.c.readText(e)
		if !ok {
			continue
		}
		glob, wrong := parsePathGlob(s)
		if wrong != "" {
			r.c.failAt(e.node, "%s: %q %s", e.path, plainASCII(s, 60), wrong)
		}
		rules.paths = append(rules.paths, glob)
	}
}

func (r requestReader) readBody(o *object, rules *requestRules) {
	size, sized := o.fields["max_body"]
	if sized {
		rules.maxBody, _ = r.readSize(size)
	}
	f, given := o.fields["deny_patterns"]
	if !given {
		return
	}
	for _, e := range r.readSome(f, maxDenyPatterns) {
		if s, ok := r.c.readText(e); ok && r.c.expression(e, s) != nil {
			rules.patterns = append(rules.patterns, s)
		}
	}
	switch {
	case !sized:
		rules.maxBody = defaultSearched
	case rules.maxBody > maxSearched:
		r.c.failAt(size.node, "%s: a body in which deny_patterns are looked for is read whole, and may have at most %d bytes", size.path, maxSearched)
	}
}

// readSome reads a list of at least one element.
func (r requestReader) readSome(v value, most int) []value {
	elements, ok := r.c.readList(v)
	if ok && (len(elements) == 0 || len(elements) > most) {
		r.c.failAt(v.node, "%s has %d entries, and has from 1 to %d", v.path, len(elements), most)
		return nil
	}
	return elements
}

// readSize reads a number of bytes, or "64kB", "1MB", "2MiB".
func (r requestReader) readSize(v value) (int64, bool) {
	if v.node.ShortTag() == "!!int" {
		return r.c.integer(v, 0, 1<<40)
	}
	s, ok := r.c.readText(v)
	if !ok {
		return 0, false
	}
	number := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
	factor, known := quantityFactor(strings.Replace(strings.TrimSuffix(s[len(number):], "B"), "K", "k", 1))
	n, err := strconv.ParseInt(number, 10, 64)
	if !known || factor < 1 || err != nil || n > (1<<40)/int64(factor) {
		r.c.failAt(v.node, "%s: %q is no size, like 64kB, 1MB or 2MiB", v.path, plainASCII(s, 40))
		return 0, false
	}
	return n * int64(factor), true
}

// oneWay refuses a name that is listed with rules for requests and without on one port:
// without them all is let through that they are to stop.
func (r requestReader) oneWay(v value) {
	for i, entry := range r.c.policy.network {
		if entry.preset != "" {
			continue // it gives way
		}
		before := slices.IndexFunc(r.c.policy.network[:i], func(other hostEntry) bool {
			return other.preset == "" && other.Host == entry.Host && other.Wildcard == entry.Wildcard && other.judged() != entry.judged() &&
				slices.ContainsFunc(other.portsOf(), func(port int) bool { return slices.Contains(entry.portsOf(), port) })
		})
		if before >= 0 {
			r.c.failAt(&yaml.Node{Line: entry.line, Column: v.node.Column}, "%s: %s is also on line %d, once with rules for requests and once without, which lets all through; keep one of them",
				v.path, entry.NetworkPattern, r.c.policy.network[before].line)
		}
	}
}

// expression reads a regular expression; nil if it is none.
func (c *compiler) expression(v value, text string) *expression.Expression {
	if len(text) > maxPattern {
		c.failAt(v.node, "%s has %d bytes, and at most %d are read", v.path, len(text), maxPattern)
		return nil
	}
	pattern, err := expression.Parse(text)
	if err != nil {
		c.failAt(v.node, "%s is not a regular expression as Python reads it: %s", v.path, oneLine(err.Error()))
		return nil
	}
	if c.steps += pattern.Size(); c.steps > maxSteps {
		c.failAt(v.node, "%s: the document's expressions come to more than %d steps; repeat less", v.path, maxSteps)
		return nil
	}
	return pattern
}

// String says what is asked of requests.
func (r *requestRules) String() string {
	if r.git != nil {
		return r.git.String()
	}
	text := "each request is judged: "
	if r.methods == nil {
		text += "every method"
	} else {
		text += strings.Join(r.methods, ", ")
	}
	if n := len(r.paths); n > 0 {
		text += ", on " + counted(n, "path")
	}
	if r.maxBody >= 0 {
		text += ", with at most " + strconv.FormatInt(r.maxBody, 10) + " bytes of body"
	}
	if n := len(r.patterns); n > 0 {
		text += ", with nothing of " + counted(n, "pattern") + " in it"
	}
	return text
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
