package policy

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Namespace gives names to an upstream: a name that Pattern matches is asked of
// that upstream and of no other, whatever policies say.
type Namespace struct {
	Ecosystem pkgref.Ecosystem
	// Pattern is a canonical name, or a prefix of one followed by "*"
	// ("@acme/*", "acme-*", "git.acme.example/*").
	Pattern string
	// Upstream is the index's URL as upstreams: has it.
	Upstream string
}

// CanonicalPattern gives the one spelling of a Namespace's pattern.
func CanonicalPattern(ecosystem pkgref.Ecosystem, pattern string) (string, error) {
	prefix, wild := strings.CutSuffix(pattern, "*")
	if !wild {
		return pkgref.CanonicalName(ecosystem, pattern)
	}
	// A prefix is what stands before a name's last letter.
	name, err := pkgref.CanonicalName(ecosystem, prefix+"x")
	if err != nil || prefix == "" || strings.Contains(prefix, "*") {
		return "", fault.Invalid("%q begins no %s package's name; write a name, or like \"acme-*\"", plainASCII(pattern, 60), ecosystem)
	}
	return strings.TrimSuffix(name, "x") + "*", nil
}

func (n Namespace) matchesProject(p pkgref.Ref) bool {
	if n.Ecosystem != p.Ecosystem {
		return false
	}
	prefix, wild := strings.CutSuffix(n.Pattern, "*")
	return p.Name == n.Pattern || wild && strings.HasPrefix(p.Name, prefix)
}

// OwnerOf says to which upstream a list gives a package: the longest pattern
// that matches decides, a whole name before a prefix, of equal ones the first.
func OwnerOf(list []Namespace, p pkgref.Ref) (upstream string, owned bool) {
	longest := -1
	for _, n := range list {
		if !n.matchesProject(p) {
			continue
		}
		length := 2 * len(strings.TrimSuffix(n.Pattern, "*"))
		if !strings.HasSuffix(n.Pattern, "*") {
			length++
		}
		if length > longest {
			longest, upstream, owned = length, n.Upstream, true
		}
	}
	return upstream, owned
}

// SameUpstream tells whether two URLs are one upstream's.
func SameUpstream(a, b string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// Owner says to which upstream the installation's own namespaces, or else the
// policy's, give a package.
func (p *Policy) Owner(installation []Namespace, pkg pkgref.Ref) (upstream string, owned bool) {
	if upstream, owned = OwnerOf(installation, pkg); owned {
		return upstream, owned
	}
	return OwnerOf(p.namespaces, pkg)
}

// hasPattern finds the namespace with the same pattern.
func hasPattern(list []Namespace, n Namespace) (Namespace, bool) {
	i := slices.IndexFunc(list, func(o Namespace) bool { return o.Ecosystem == n.Ecosystem && o.Pattern == n.Pattern })
	if i < 0 {
		return Namespace{}, false
	}
	return list[i], true
}
