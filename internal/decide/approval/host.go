package approval

import (
	"context"
	"crypto/sha256"
	"net"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Kind says what a request is about.
type Kind string

// matter is what a request is about: a release of an index, or one of the others.
type matter struct {
	pkg      pkgref.Ref
	upstream string
	host     Host
	call     Call
}

func (a Ask) matter() matter { return matter{a.Package, a.Upstream, a.Host, a.Call} }

func (e Entry) matter() matter { return matter{e.Package, e.Upstream, e.Host, e.Call} }

// matterKey is what there is one pending request of.
func (m matter) matterKey() matter {
	m.call.Arguments = "" // the digest tells them
	return m
}

func (m matter) kindOf() Kind {
	switch {
	case m.host.pushes():
		return KindPush
	case m.host.isNamed():
		return KindHost
	case m.call.isNamed():
		return KindCall
	}
	return ""
}

// ofRelease tells that it has files, by whose digests answers are bound.
func (m matter) ofRelease() bool { return m.kindOf() == "" }

// project is under what a store finds requests about it: a package without the version, a
// host, a tool.
func (m matter) project() pkgref.Ref {
	switch m.kindOf() {
	case KindHost, KindPush:
		return m.host.Project()
	case KindCall:
		return m.call.Project()
	}
	return pkgref.Ref{Ecosystem: m.pkg.Ecosystem, Name: m.pkg.Name}
}

// String is what it is, for people. Others wrote it.
func (m matter) String() string {
	switch m.kindOf() {
	case KindPush:
		return "push to " + m.host.Named()
	case KindHost:
		return "host " + m.host.String()
	case KindCall:
		return m.call.String()
	}
	return m.pkg.String()
}

// KindHost is a request for a host on the network. The zero Kind is a release, or a tree.
const KindHost Kind = "host"

// KindPush is a request for one push to a repository of a host.
const KindPush Kind = "push"

// Host is a host on the network, by name, on one port, or a push to a repository of one. An
// answer about it is bound to all of it, and to nothing else that the host says or has: it
// has no files.
type Host struct {
	Name string `json:"name"`
	Port int    `json:"port"`
	// Repository is where a push is to, canonical, and Push the digest of all that it
	// changes ("sha256:..."); "" of a host.
	Repository string `json:"repository,omitempty"`
	Push       string `json:"push,omitempty"`
}

// String is "api.example:443", or "git.example:443/acme/app".
func (h Host) String() string {
	text := net.JoinHostPort(h.Name, strconv.Itoa(h.Port))
	if h.pushes() {
		text += "/" + h.Repository
	}
	return text
}

// Named is String, and of a push the digest of all that it changes: two that differ never have
// the same text.
func (h Host) Named() string {
	if h.pushes() {
		return h.String() + " " + h.Push
	}
	return h.String()
}

// Project is under what stores find requests and answers about the host, or the push; no
// package has it.
func (h Host) Project() pkgref.Ref {
	if h.pushes() {
		return pkgref.Ref{Ecosystem: "push", Name: h.Named()}
	}
	return pkgref.Ref{Ecosystem: "host", Name: h.String()}
}

// pushes tells that it is a push.
func (h Host) pushes() bool { return h.Repository != "" || h.Push != "" }

// isNamed tells whether there is one.
func (h Host) isNamed() bool { return h != Host{} }

// Project is under what a store finds the request: its package without the version, its
// host's, or its tool's.
func (r Request) Project() pkgref.Ref { return Entry{Request: r}.matter().project() }

// What is what the request is about, for people: "python rich 13.7.1", "host api.example:443",
// "push to git.example:443/acme/app sha256:...", "tool lookup_order sha256:...". Others wrote it.
// It says which of two pushes or calls it is, as far as anything does.
func (r Request) What() string { return Entry{Request: r}.matter().String() }

// Fingerprint is a digest of all that an answer about the request would be bound to: what it is
// about, where it comes from, and each digest. Two requests that an answer tells apart differ
// in it, and so does one that has more files than before.
func (r Request) Fingerprint() string {
	parts := []string{string(r.Kind), r.What(), r.Upstream} // of a push or a call with its digest
	for _, f := range r.Files {
		parts = append(parts, "file", f.Name)
		parts = append(parts, f.Digests...)
	}
	for _, m := range r.Members {
		parts = append(parts, "member", m.ID, m.Package.String())
		parts = append(parts, m.Digests...)
	}
	return text.DigestList(parts)
}

// checkHost refuses an ask for a host that is not one and no more.
func checkHost(ask Ask) error {
	switch {
	case ask.Package != (pkgref.Ref{}) || ask.Upstream != "" || len(ask.Files) > 0:
		return fault.Invalid("a host and a package are asked for apart")
	case ask.Host.Name == "" || len(ask.Host.Name) > maxHostName || !showsPlainly(ask.Host.Name) || ask.Host.Port < 1 || ask.Host.Port > 65535:
		return fault.Invalid("%q is no host that a person can be asked about", boundText(ask.Host.String(), maxShort))
	case ask.Host.pushes() && (ask.Host.Repository == "" || len(ask.Host.Repository) > maxRepository || !showsPlainly(ask.Host.Repository) || !digestIs(ask.Host.Push)):
		return fault.Invalid("a push to %q is none that a person can be asked about", boundText(ask.Host.String(), maxShort))
	}
	return nil
}

// showsPlainly tells whether a name is what it looks like: hosts and repositories have names of ASCII,
// in which nothing hides, turns the text around or looks like another letter.
func showsPlainly(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

// digestIs tells whether a text is the digest of a push.
func digestIs(text string) bool {
	sum, is := strings.CutPrefix(text, "sha256:")
	return is && len(sum) == sha256.Size*2 && strings.Trim(sum, "0123456789abcdef") == ""
}

// maxHostName is the longest name that there is.
const maxHostName = 253

// maxRepository is the longest name of a repository, in bytes.
const maxRepository = 500

// compareHost adds what earlier requests for the host tell: when it was first asked for
// here, and the last answer that let somebody in.
func (q *Queue) compareHost(ctx context.Context, host Host, e evidence.Evidence) (evidence.Evidence, error) {
	project := host.Project()
	earlier, err := q.cfg.Store.List(ctx, Filter{Ecosystem: project.Ecosystem, Package: project.Name, Limit: lookBack})
	if err != nil {
		return evidence.Evidence{}, err
	}
	for _, r := range earlier { // the newest first
		if e.FirstSeen.IsZero() || r.Created.Before(e.FirstSeen) {
			e.FirstSeen = r.Created
		}
		if a := r.Answer; a != nil && a.State == Approved && e.LastApproved == "" {
			e.LastApproved = r.ID + " by " + a.By
		}
	}
	return cleanEvidence(e), nil
}
