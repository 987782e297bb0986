package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	maxPort       = 65535
	maxPublished  = 100 // entries of published_ports
	publishedPath = "published_ports"
)

// portRange is ports from first to last, both included.
type portRange struct{ first, last int }

func (r portRange) String() string {
	if r.first == r.last {
		return strconv.Itoa(r.first)
	}
	return strconv.Itoa(r.first) + "-" + strconv.Itoa(r.last)
}

// Publishes reports whether clients may connect to a port inside of the
// sandbox. Without published_ports none is published.
func (p *Policy) Publishes(port int) bool {
	return slices.ContainsFunc(p.published, func(r portRange) bool { return r.first <= port && port <= r.last })
}

// LeavesToHost reports whether who may start commands in the sandbox from its host may
// connect to a port, too: one that is published, or any where the document says nothing
// of ports. It has no say over what such a person can do by a command inside.
func (p *Policy) LeavesToHost(port int) bool { return !p.ingress || p.Publishes(port) }

// PublishSuggestion is the line that would publish a port, beside those that
// are published already.
func (p *Policy) PublishSuggestion(port int) string {
	var entries []string
	for _, r := range p.published {
		entries = append(entries, r.document())
	}
	entries = append(entries, portRange{port, port}.document())
	return publishedPath + ": [" + strings.Join(entries, ", ") + "]\n"
}

// document is the range as a document writes it.
func (r portRange) document() string {
	if r.first == r.last {
		return r.String()
	}
	return strconv.Quote(r.String())
}

func (c *compiler) publishedPorts(v value) {
	if !c.claimThing("ingress", v) {
		return
	}
	c.policy.ingress = true
	elements, ok := c.readList(v)
	if !ok {
		return
	}
	if len(elements) > maxPublished {
		c.failAt(v.node, "%s has %d entries, and at most %d are read", v.path, len(elements), maxPublished)
		return
	}
	for _, e := range elements {
		if r, ok := c.publishedRange(e); ok {
			c.addPublished(e, r)
		}
	}
	if len(elements) == 0 {
		c.explainEnforced(v, "an empty list: no port of the sandbox is published")
	}
}

// addPublished adds a range that no other overlaps.
func (c *compiler) addPublished(v value, r portRange) {
	for _, other := range c.policy.published {
		if r.first <= other.last && other.first <= r.last {
			c.failAt(v.node, "%s: %s overlaps with %s; keep one of them", v.path, r, other)
			return
		}
	}
	c.policy.published = append(c.policy.published, r)
	slices.SortFunc(c.policy.published, func(a, b portRange) int { return cmp.Compare(a.first, b.first) })
	what := "port " + r.String()
	if r.first != r.last {
		what = "ports " + r.String()
	}
	c.explainEnforced(v, "clients of the daemon may connect to %s inside, on the sandbox's own loopback interface", what)
}

// publishedRange reads a port, or a text of two with a hyphen.
func (c *compiler) publishedRange(v value) (portRange, bool) {
	if nodeKind(v.node) == "a number" {
		port, ok := c.integer(v, 1, maxPort)
		return portRange{int(port), int(port)}, ok
	}
	s, ok := c.readText(v)
	if !ok {
		return portRange{}, false
	}
	first, last, isRange := strings.Cut(s, "-")
	r := portRange{plainPort(first), plainPort(last)}
	if !isRange || r.first == 0 || r.last == 0 {
		c.failAt(v.node, "%s must be a port like 8080 or a range like \"3000-3010\", and is %q", v.path, plainASCII(s, 40))
		return portRange{}, false
	}
	if r.first > r.last {
		c.failAt(v.node, "%s: the range %s ends before it begins", v.path, fmt.Sprintf("%q", plainASCII(s, 40)))
		return portRange{}, false
	}
	return r, true
}

// plainPort reads a port in its one spelling; 0: it is none.
func plainPort(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxPort || strconv.Itoa(n) != s {
		return 0
	}
	return n
}
