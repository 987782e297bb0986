package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
)

// ruleGit is of requests of git's that no entry of network_allowlist has.
const ruleGit = "network.git"

// gitRules are what an entry says of repositories.
type gitRules struct {
	repos []pathGlob
	// caseless are the same in lower case: a host may find a repository by a name in other
	// capitals, so what restricts counts for that, too, and for one with dots behind it.
	caseless []pathGlob
	fetch    Effect
	push     Effect // "": it says nothing, and another entry may
}

// effect is what it says of an operation.
func (g *gitRules) effect(o gitwire.Operation) Effect {
	if o == gitwire.Push {
		return g.push
	}
	return g.fetch
}

// namesRepository tells whether a repository is one of its own: as it is written, or in other capitals and with
// dots at its segments' ends, which some file systems do not keep.
func (g *gitRules) namesRepository(repository string) (exactly, nearly bool) {
	is := func(globs []pathGlob, name string) bool {
		segments := strings.Split(name, "/")
		return slices.ContainsFunc(globs, func(g pathGlob) bool { return g.matchesPath(segments) })
	}
	return is(g.repos, repository), is(g.caseless, strings.ToLower(repository)) || is(g.caseless, withoutLastDots(strings.ToLower(repository)))
}

// withoutLastDots is a repository's name as file systems of Windows have it: dots at the end of a
// segment, and a .git that stands before them, are gone.
func withoutLastDots(repository string) string {
	segments := strings.Split(repository, "/")
	for i, one := range segments {
		bare := strings.TrimRight(one, ".")
		if i == len(segments)-1 && bare != one {
			bare = strings.TrimSuffix(bare, ".git")
		}
		segments[i] = bare
	}
	return strings.Join(segments, "/")
}

// String says what is asked of git's requests.
func (g *gitRules) String() string {
	text := "git's smart protocol: fetches are " + outcomeOf(g.fetch) + ", pushes are " + outcomeOf(g.push)
	return text + ", in repositories of " + counted(len(g.repos), "pattern")
}

func outcomeOf(e Effect) string {
	switch e {
	case Allow:
		return "allowed"
	case Hold:
		return "held for a person"
	case Deny:
		return "refused"
	}
	return "refused unless another entry has them"
}

// isOfRepositories tells whether an entry is about repositories.
func (h hostEntry) isOfRepositories() bool { return h.requests != nil && h.requests.git != nil }

// judgeGit judges a request to a host for which an entry is about repositories. judged is
// false for what is none of git's: that is for the other entries, which in turn have no
// say in what is.
func judgeGit(entries []hostEntry, name string, r Request) (d Decision, terms RequestTerms, judged bool) {
	if !slices.ContainsFunc(entries, hostEntry.isOfRepositories) {
		return Decision{}, RequestTerms{}, false
	}
	refused := Decision{Effect: Deny, Rule: ruleGit, ResolvedBy: ByNetwork}
	if _, wrong := splitPath(r.Path); wrong != "" {
		refused.Reason = reason("the path of a request to %s %s, so it could be read in two ways", plainASCII(name, 253), wrong)
		return refused, RequestTerms{}, true
	}
	one, found, wrong := gitwire.Read(r.Method, r.Path, r.Query)
	if wrong != "" {
		refused.Reason = reason("a request to %s %s", plainASCII(name, 253), wrong)
		return refused, RequestTerms{}, true
	}
	if !found {
		return Decision{}, RequestTerms{}, false
	}
	effect, rule := gitEffect(entries, one)
	if effect == Deny {
		refused.Reason = reason("the policy's git rules for %s allow no %s of %s", plainASCII(name, 253), one.Operation, plainASCII(one.Repository, 200))
		refused.Suggest = suggestGit(entries[0].NetworkPattern, one)
		return refused, RequestTerms{}, true
	}
	d = Decision{Effect: Allow, Rule: rule, ResolvedBy: ByNetwork, Reason: reason("the policy's git rules have a %s of %s at %s", one.Operation, plainASCII(one.Repository, 200), plainASCII(name, 253))}
	return d, RequestTerms{MaxBody: noLimit, Git: one.Operation, HeldPush: effect == Hold && one.Carries}, true
}

// gitEffect is what the entries say of an operation on a repository. One has to allow it,
// or hold it, by its name as it is written. The strictest that is said of it counts, also
// of the name in other capitals.
func gitEffect(entries []hostEntry, r gitwire.Request) (e Effect, rule string) {
	granted, held := false, false
	for _, entry := range entries {
		if !entry.isOfRepositories() {
			continue
		}
		exactly, nearly := entry.requests.git.namesRepository(r.Repository)
		if !nearly {
			continue
		}
		switch entry.requests.git.effect(r.Operation) {
		case Deny:
			return Deny, ""
		case Hold:
			held = true
		case Allow:
		default:
			continue
		}
		if exactly && !granted {
			granted, rule = true, entry.ruleID()
		}
	}
	switch {
	case !granted:
		return Deny, ""
	case held:
		return Hold, rule
	}
	return Allow, rule
}

// suggestGit is the lines that would allow an operation, a push once a person says yes.
func suggestGit(host NetworkPattern, r gitwire.Request) string {
	entry := "{ host: " + strconv.Quote(NetworkPattern{Host: host.Host, Wildcard: host.Wildcard}.String())
	if host.Port != 0 {
		entry += ", port: " + strconv.Itoa(host.Port)
	}
	entry += ", git: { repos: [" + strconv.Quote(r.Repository) + "]"
	if r.Operation == gitwire.Push {
		entry += ", push: hold"
	}
	return ruleNetworkEntry + ":\n  - " + entry + " } }\n"
}
