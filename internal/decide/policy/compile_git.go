package policy

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
)

// maxRepositories bounds how many patterns of repositories an entry has.
const maxRepositories = 100

// readGit reads what an entry says of repositories, where it says something.
func (r requestReader) readGit(o *object, rules *requestRules) {
	f, given := o.fields["git"]
	if !given {
		return
	}
	for _, key := range []string{"methods", "paths", "max_body", "deny_patterns"} {
		if other, given := o.fields[key]; given {
			r.c.failAt(other.key, "%s can't stand beside git, which says all of git's requests; give other requests an entry of their own", other.path)
			return
		}
	}
	inner := r.c.object(f, keysOf[gitKeys]()...)
	if inner == nil {
		return
	}
	repos, given := inner.fields["repos"]
	if !given {
		r.c.failAt(f.node, "%s needs repos: which ones, like [acme/*]", f.path)
		return
	}
	git := &gitRules{fetch: Allow}
	for _, e := range r.readSome(repos, maxRepositories) {
		r.repository(e, git)
	}
	if f, given := inner.fields["fetch"]; given {
		word, _ := r.c.readWord(f, string(Allow), string(Deny))
		git.fetch = Effect(word)
	}
	if f, given := inner.fields["push"]; given {
		word, _ := r.c.readWord(f, string(Allow), string(Hold), string(Deny))
		git.push = Effect(word)
	}
	rules.git = git
}

// repository reads a pattern of repositories.
func (r requestReader) repository(v value, git *gitRules) {
	s, ok := r.c.readText(v)
	if !ok {
		return
	}
	name, wrong := gitwire.Repository(strings.ReplaceAll(s, "*", "-"))
	var glob pathGlob
	if wrong == "" {
		glob, wrong = parsePathGlob("/" + s[:len(name)])
	}
	if wrong != "" {
		r.c.failAt(v.node, "%s: %q %s; it is a path at the host, like acme/app or acme/*", v.path, plainASCII(s, 60), wrong)
		return
	}
	caseless := make(pathGlob, len(glob))
	for i, segment := range glob {
		caseless[i] = strings.ToLower(segment)
	}
	git.repos, git.caseless = append(git.repos, glob), append(git.caseless, caseless)
}
