package policy

import (
	"net/url"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// maxNamespaces: every package is compared with each.
const maxNamespaces = 1000

func (c *compiler) readNamespaces(v value) {
	elements, ok := c.readList(v)
	if !ok {
		return
	}
	if len(elements) > maxNamespaces {
		c.failAt(v.node, "namespaces has %d elements, and at most %d are read", len(elements), maxNamespaces)
		return
	}
	if len(elements) == 0 {
		c.explainEnforced(v, "an empty list: no name is private")
	}
	for _, e := range elements {
		c.namespace(e)
	}
}

func (c *compiler) namespace(v value) {
	o := c.object(v, keysOf[namespaceKeys]()...)
	if o == nil {
		return
	}
	words := map[string]string{}
	for _, key := range []string{"ecosystem", "pattern", "upstream"} {
		f, given := o.fields[key]
		if !given {
			c.failAt(v.node, "%s needs ecosystem, pattern and upstream; %s is missing", v.path, key)
			return
		}
		if words[key], given = c.readText(f); !given {
			return
		}
	}
	n := Namespace{Upstream: words["upstream"]}
	var err error
	if n.Ecosystem, err = pkgref.ParseEcosystem(words["ecosystem"]); err != nil {
		c.failAt(o.fields["ecosystem"].node, "%s.ecosystem: %v", v.path, err)
		return
	}
	if n.Pattern, err = CanonicalPattern(n.Ecosystem, words["pattern"]); err != nil {
		c.failAt(o.fields["pattern"].node, "%s.pattern: %v", v.path, err)
		return
	}
	if !isUpstream(n.Upstream) {
		c.failAt(o.fields["upstream"].node, "%s.upstream must be an index's URL like https://index.example/simple/, without credentials", v.path)
		return
	}
	if other, twice := hasPattern(c.policy.namespaces, n); twice {
		if !SameUpstream(other.Upstream, n.Upstream) {
			c.failAt(v.node, "%s: %s is given to two upstreams, %s and %s", v.path, plainASCII(n.Pattern, 60), plainASCII(other.Upstream, 60), plainASCII(n.Upstream, 60))
			return
		}
		c.failAt(v.node, "%s: %s is in the list twice", v.path, plainASCII(n.Pattern, 60))
		return
	}
	c.policy.namespaces = append(c.policy.namespaces, n)
	c.explainEnforced(v, "%s packages called %s come from %s and from nowhere else", n.Ecosystem, plainASCII(n.Pattern, 60), plainASCII(n.Upstream, 80))
}

func isUpstream(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil &&
		u.RawQuery == "" && u.Fragment == "" && !strings.ContainsAny(s, " ?#")
}
