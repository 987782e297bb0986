package policy

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
)

// ruleRequest is the rule of requests that no entry of network_allowlist has.
const ruleRequest = "network.request"

// Bounds of what an entry of network_allowlist asks of requests.
const (
	maxMethods      = 16
	maxPaths        = 64
	maxDenyPatterns = 32
	// A body in which patterns are looked for is read whole before any of it is sent.
	defaultSearched = 1_000_000
	maxSearched     = 4_000_000
)

// noLimit is the size of a body that may have any.
const noLimit = -1

// requestRules are what an entry asks of each request.
type requestRules struct {
	methods  []string // nil: every one
	paths    []pathGlob
	maxBody  int64 // noLimit: of any size
	patterns []string
	git      *gitRules // nil: it is about requests of any kind; else it has none of the above
}

// Request is what of an HTTP request is judged before its body comes.
type Request struct {
	Method string
	Path   string // as it is sent, escaped, without the query
	Query  string // only git's is looked at; of a longer one the beginning
}

// RequestTerms are what a request that may be made is still held to. The zero value lets
// no body pass.
type RequestTerms struct {
	MaxBody  int64    `json:"max_body"`           // in bytes; below 0: of any size
	Patterns []string `json:"patterns,omitempty"` // expressions that must not be found in it
	// Git is what the request does with a repository, by the policy's rules for git; "": it
	// was judged by no such rule.
	Git gitwire.Operation `json:"git,omitempty"`
	// HeldPush tells that it is a push, and that a person is asked about each.
	HeldPush bool `json:"held_push,omitempty"`
	// ByMethod tells that the policy rules on methods, so that nothing in it may stand for
	// another one.
	ByMethod bool `json:"by_method,omitempty"`
}

// Limited tells whether a body may have so many bytes at most.
func (t RequestTerms) Limited() bool { return t.MaxBody >= 0 }

// combineWith returns what is held to both.
func (t RequestTerms) combineWith(other RequestTerms) RequestTerms {
	if !t.Limited() || other.Limited() && other.MaxBody < t.MaxBody {
		t.MaxBody = other.MaxBody
	}
	t.Patterns = slices.Concat(t.Patterns, other.Patterns)
	if t.Git == "" {
		t.Git = other.Git
	}
	t.HeldPush, t.ByMethod = t.HeldPush || other.HeldPush, t.ByMethod || other.ByMethod
	return t
}

// Requests are what a policy, and those that narrow it, have on requests to hosts.
type Requests struct{ layers []*Policy }

// Requests are the policy's rules for requests.
func (p *Policy) Requests() Requests { return Requests{p.layers()} }

// Judged tells whether each request to a name on a port is judged, so that the
// gateway ends TLS on a connection to it: also on the ports of a host on which it gets no
// secret, if it gets one on another. Only what passes unread there by tcp: true still does.
func (r Requests) Judged(name string, port int) bool {
	return slices.ContainsFunc(r.layers, func(l *Policy) bool {
		deciding := l.network.deciding(name, port)
		return slices.ContainsFunc(deciding, hostEntry.judged) || slices.ContainsFunc(l.credentials, func(c Credential) bool {
			return c.isForHost(name, port) || c.Host == name && !slices.ContainsFunc(deciding, func(e hostEntry) bool { return e.tcp })
		})
	})
}

// Git tells whether repositories at a name on a port are judged.
func (r Requests) Git(name string, port int) bool {
	return slices.ContainsFunc(r.layers, func(l *Policy) bool {
		return slices.ContainsFunc(l.network.deciding(name, port), hostEntry.isOfRepositories)
	})
}

// Hosts are the names for which the gateway ends TLS, sorted: hosts, and "*." with
// one for all below it.
func (r Requests) Hosts() []string {
	hosts := map[string]bool{}
	for _, l := range r.layers {
		for _, entry := range l.network {
			if entry.judged() {
				hosts[NetworkPattern{Host: entry.Host, Wildcard: entry.Wildcard}.String()] = true
			}
		}
		for _, c := range l.credentials { // of a narrower policy: it gives none, and the host takes no other
			hosts[c.Host] = true
		}
	}
	return slices.Sorted(maps.Keys(hosts))
}

// Judge judges a request on a connection to a name and a port, to which Host has agreed
// already. Every policy that has rules for it must agree, whoever opened the name under
// another one. An allowed request is held to the terms.
func (r Requests) Judge(name string, port int, one Request) (Decision, RequestTerms) {
	d := Decision{Effect: Allow, Rule: ruleRequest, ResolvedBy: ByNetwork, Reason: reason("no policy has rules for requests to %s", plainASCII(name, 253))}
	terms := RequestTerms{MaxBody: noLimit}
	for _, l := range r.layers {
		deciding := l.network.deciding(name, port)
		if !slices.ContainsFunc(deciding, hostEntry.judged) {
			continue
		}
		judged, more := judgeRequest(deciding, name, one)
		if !judged.Allowed() {
			return judged, RequestTerms{}
		}
		if d.Rule == ruleRequest {
			d = judged
		}
		terms = terms.combineWith(more)
	}
	return d, terms
}

// judgeRequest judges by a policy's entries for a host. They agree if one does.
func judgeRequest(entries []hostEntry, name string, r Request) (Decision, RequestTerms) {
	if d, terms, judged := judgeGit(entries, name, r); judged {
		return d, terms
	}
	path, wrong := readPath(r.Path)
	method, ambiguous := false, ""
	for _, entry := range entries {
		rules := entry.requests
		if rules == nil || rules.git != nil || rules.methods != nil && !slices.Contains(rules.methods, r.Method) {
			continue
		}
		method = true
		if len(rules.paths) > 0 && wrong != "" {
			ambiguous = wrong
			continue
		}
		if len(rules.paths) == 0 || slices.ContainsFunc(rules.paths, func(g pathGlob) bool { return g.matchesSent(path) }) {
			return Decision{
				Effect: Allow, Rule: entry.ruleID(), ResolvedBy: ByNetwork,
				Reason: reason("the policy's network_allowlist has such requests to %s", plainASCII(name, 253)),
			}, RequestTerms{MaxBody: rules.maxBody, Patterns: rules.patterns, ByMethod: rules.methods != nil}
		}
		if ambiguous == "" && slices.ContainsFunc(rules.paths, func(g pathGlob) bool { return g.matchesPath(path.segments) }) {
			ambiguous = "escapes a #, at which a server that decodes first ends it, and the policy does not have what stands before it"
		}
	}
	refused := Decision{Effect: Deny, Rule: ruleRequest, ResolvedBy: ByNetwork}
	switch {
	case ambiguous != "":
		refused.Reason = reason("the path of a request to %s %s, so it could be read in two ways", plainASCII(name, 253), ambiguous)
		return refused, RequestTerms{}
	case method:
		refused.Reason = reason("the policy's network_allowlist has %s, and not %s requests to %s of it", plainASCII(name, 253), plainASCII(r.Method, 20), plainASCII(r.Path, 200))
	default:
		refused.Reason = reason("the policy's network_allowlist has %s, and not %s requests to it", plainASCII(name, 253), plainASCII(r.Method, 20))
	}
	refused.Suggest = suggestRequest(entries[0].NetworkPattern, r)
	return refused, RequestTerms{}
}

// entriesFor are the entries that count for a name, on any port. Those with rules for requests
// stand before the ones that have none and are about more names, or of a preset: what
// these have on other ports would let past what the rules are to stop.
func (l hostList) entriesFor(name string) hostList {
	var all hostList
	var judged *hostEntry // of those with rules, the one about the fewest names
	for _, entry := range l {
		if !entry.matchesHost(name) {
			continue
		}
		if all = append(all, entry); entry.judged() && (judged == nil || entry.closer(*judged)) {
			judged = &entry
		}
	}
	if judged == nil {
		return all
	}
	return slices.DeleteFunc(all, func(entry hostEntry) bool {
		return !entry.judged() && (judged.closer(entry) || entry.preset != "" && !entry.closer(*judged))
	})
}

// deciding are the entries that count for a name on a port: those of the name itself
// before those with a star, and of these the ones that are about the fewest names.
func (l hostList) deciding(name string, port int) hostList {
	var best hostList
	for _, entry := range l.entriesFor(name) {
		if !slices.Contains(entry.portsOf(), port) {
			continue
		}
		switch {
		case len(best) == 0 || entry.closer(best[0]):
			best = hostList{entry}
		case !best[0].closer(entry):
			best = append(best, entry)
		}
	}
	return best
}

// judged tells whether it has rules for requests.
func (h hostEntry) judged() bool { return h.requests != nil }

// closer tells whether it is about fewer names than another one that has the same name.
func (h hostEntry) closer(than hostEntry) bool {
	if h.Wildcard != than.Wildcard {
		return than.Wildcard
	}
	return len(h.Host) > len(than.Host)
}

// suggestRequest is the lines that would allow a request; "" for one that no entry has.
func suggestRequest(host NetworkPattern, r Request) string {
	if _, wrong := parsePathGlob(r.Path); wrong != "" || !isMethod(r.Method) || strings.Contains(r.Path, "*") {
		return ""
	}
	entry := "{ host: " + strconv.Quote(NetworkPattern{Host: host.Host, Wildcard: host.Wildcard}.String())
	if host.Port != 0 {
		entry += ", port: " + strconv.Itoa(host.Port)
	}
	return ruleNetworkEntry + ":\n  - " + entry + ", methods: [" + r.Method + "], paths: [" + strconv.Quote(r.Path) + "] }\n"
}

// isMethod tells whether an entry can have a method: those that are none of a host's own
// resources are never passed on.
func isMethod(s string) bool {
	return s != "" && len(s) <= 20 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == "" && s != "CONNECT" && s != "TRACE"
}
